"""POP: the broker hands messages out one by one and remembers who has not acknowledged which.

A pop takes messages of a queue for a group and hides them from its other members for a while. An
acknowledged message is done with. One that is not acknowledged in time is copied to the retry topic
of group and topic, `%RETRY%group_topic`, and after its last try to the group's dead letters. A
group's committed offset of a queue is that of its first message that is still out, so that lag
shows in every tool, and members that pull can take over. Ordered pops lock their queue instead, and
give the same messages again.

How it is kept. All of it lives in memory, by queue; every change is noted in a journal, one record
for all changes of a turn of the loop, in queue 0 of RocketMQ's revive topic. The journal is written
with the messages of the turn, and an acknowledgement is answered only then: it costs one append for
hundreds of them, and outlives a killed broker exactly as messages do. Now and then the whole is
saved as one document, together with how far the journal went; a broker that starts reads it and
goes on with the rest of the journal. Whatever a crash tears (a retry that was stored but not noted,
a pop that was answered but not noted) is delivered again; nothing is passed over, since offsets are
committed only as far as everything before them is done. RocketMQ writes a message for each pop and
for each ack, delays both through its timers, and joins them afterwards; SQLite would need a
transaction of its own, with its own sync, for every turn.
"""

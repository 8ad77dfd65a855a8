"""POP: the broker hands out messages one by one and tracks which are not acknowledged yet.

A pop takes messages of a queue for a group and hides them from its other members for a while: they
are in flight. An acknowledged message is done. One that is not acknowledged in time is copied to
the retry topic of group and topic, `%RETRY%group_topic`, and after its last try to the group's
dead-letter topic. A group's committed offset of a queue is that of its first message in flight, so
that lag shows in every tool, and members that pull can take over. Ordered pops lock their queue
instead, and return the same messages again.

`requests` has the handlers, `pops` takes and settles messages, `waiting` holds pops that found
none, and `redelivery` brings back what was not acknowledged.

State and recovery. All state is in memory, by queue (`all_in_flight`, with one `QueueInFlight` for
the messages in flight of one group in one queue). Every change is an entry in a journal, one record
for all changes of one event-loop iteration, in queue 0 of RocketMQ's revive topic. The journal is
written with the messages of the iteration, and an acknowledgement is answered only then: it costs
one append for hundreds of them, and survives a killed broker exactly as messages do. Now and then
the whole state is saved as one document (`recovery`), together with the end of the journal; a
broker that starts reads it and replays the rest of the journal. Whatever a crash tears apart (a
retry that was stored but has no entry, a pop that was answered but has no entry) is delivered
again: at least once. Nothing is skipped, since offsets are committed only as far as everything
before them is done.

RocketMQ writes a message for each pop and for each ack, delays both through its timers, and joins
them afterwards; SQLite would need a transaction with its own sync for every iteration.
"""

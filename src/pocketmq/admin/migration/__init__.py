"""Moving to another cluster while producers and consumers go on: topics, groups, messages, offsets.

`migration.Migration` is the way in. Messages are copied queue by queue, in order, each with a
property that says which one it is; a file keeps how far each queue is and where every message went,
so that a run that was killed goes on, and a group goes on exactly behind its last message.
"""

"""Moving to another cluster without downtime: topics, groups, messages, offsets.

`migration.Migration` is the entry point. Messages are copied queue by queue, in order, each with a
property that identifies its original; a file records how far each queue is and where every message
went, so that a killed run resumes, and a group resumes right after its last consumed message.
"""

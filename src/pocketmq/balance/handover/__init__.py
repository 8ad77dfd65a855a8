"""Hand-over of queues between members, without messages twice and almost without a pause.

| module | owns |
|---|---|
| `messages` | what members tell each other |
| `events`, `instructions` | what the machine is told, and what it wants done |
"""

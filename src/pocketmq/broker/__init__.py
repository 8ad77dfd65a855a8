"""A RocketMQ broker: stores messages and serves them to consumer groups, whose members it lists.

From above: `broker` starts and stops one, `assembly` builds its parts, `by_code` joins the handlers
of all features, `serving` hands requests to them. A feature is a folder with its rules, tables and
requests: `sending`, `pulling`, `pop`, `retry`, `delay`, `timers`, `transactions`, `members`,
`balancing`, `topics`, `static_topics`, `groups`, `offsets`, `name_servers`, `access`, `statistics`,
`metrics`, `upkeep`, and `settings`. Handlers work on `state`; what it holds, tables and rules, does
not import it. `writing` is the one way into the store, `saving` saves the tables, `core` is
what all share.
"""

"""Producers: one message or many, sent within one deadline.

Read `sending` first: it lists the steps of a send. They are `preparing` and `batches` (what a
caller passed, checked and encoded), `window` (back-pressure), `publishing` and `choices` (queues,
delays), `tries` (the rule), `exchange` and `requests` (the wire). Beside them: `submitting`,
`faults`, `hooks`, `trace`, `transactions`, `check_backs`, `replies`. `producer` is the public
class, in three parts: `producer_life`, which puts all of this together, `producer_exchanges` and
its sends.
"""

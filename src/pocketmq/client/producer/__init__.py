"""Producers: one message or many, sent within one deadline.

Read `sending` first: it lists the steps of a send. They are `preparing` and `batches` (what a
caller passed, checked and encoded), `window` (back-pressure), `publishing` and `choices` (queues),
`tries` (the rule), `exchange` and `requests` (the wire). Beside them: `submitting`, `delays`,
`faults`, `hooks`, `trace`, `transactions`, `check_backs`, `replies`. `running` puts them together.
`producer` is the public class, in three parts: `producer_life`, `producer_exchanges` and its sends.
"""

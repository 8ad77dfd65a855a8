"""What became of a group's queues: who owned which one when, what moved, why and at what cost.

Two kinds of evidence tell it. Members' own events are exact: `timeline` folds them into the times
of each owner, `recorded` gathers those into rebalances. Looks at a running group are not: `history`
folds `moment`s into rebalances, and what was not seen stays unknown. What moved, and how little
would have had to, is the same question for both: `differences`.
"""

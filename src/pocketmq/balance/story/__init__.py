"""The history of a group's queues: who owned which one when, what moved, why and at what cost.

There are two kinds of evidence. Members' own events are exact: `timeline` folds them into the times
of each owner, `recorded` gathers those into rebalances, `handed_over` puts together what two
members told of a hand-over, `totals` counts hand-overs for a monitor. Observations of a running
group are not: `history` folds them into `episode`s, and what was not seen stays unknown. What
moved, and the fewest moves possible, are computed by `what_if.movement` for both.
"""

"""Half messages, from prepare to commit or rollback.

`requests` serves commits and rollbacks, `checks` asks producers about messages that are still open
and discards those that stay so, `half_messages` and `half_states` have which are open, `rules` the
rest.
"""

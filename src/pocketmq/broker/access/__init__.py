"""Who may do what on a broker: accounts of 4.x in a file, users and rules of 5.x in the store.

Start at `gate`: it decides about each request. `needs_by_code` has what a request needs, `rules`
and `users` whether a user has it (5.x), `accounts` the same for 4.x.
"""

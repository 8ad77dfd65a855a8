"""A whole cluster and its clients on one loop, in time of its own."""

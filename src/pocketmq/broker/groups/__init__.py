"""Consumer groups: their table, and the requests that manage them."""

"""Topics: their table, names and attributes, and the requests that manage them."""

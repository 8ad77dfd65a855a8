"""Consumer offsets: their table, commits and queries, progress and resets."""

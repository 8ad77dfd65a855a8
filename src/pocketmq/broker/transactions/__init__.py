"""Half messages, from prepare to commit or rollback."""

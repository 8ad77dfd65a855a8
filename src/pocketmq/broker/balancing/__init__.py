"""Queue assignment by the broker, and queue locks for orderly consumers."""

"""What the broker answers to each request, one file a feature."""

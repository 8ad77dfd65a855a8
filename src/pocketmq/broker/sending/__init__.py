"""Taking messages in: checks, storing, answers to producers, replies to requests."""

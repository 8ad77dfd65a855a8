"""Load balancing, the heart of PocketMQ: who consumes which queue, and where a message is sent."""

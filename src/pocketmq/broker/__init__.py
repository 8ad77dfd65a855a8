"""A RocketMQ broker: keeps messages, and tells the members of groups about each other."""

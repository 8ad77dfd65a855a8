"""A RocketMQ broker: stores messages and serves them to consumer groups, whose members it lists."""

"""Protobuf values of the RocketMQ 5 protocol as RocketMQ's own values, and back. Sans-IO."""

"""RocketMQ's wire format, exact and sans-IO: bytes in, typed values out, and back."""

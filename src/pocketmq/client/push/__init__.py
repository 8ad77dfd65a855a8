"""The push consumer: queues shared by the rules of `balance`, pulled, and handed to handlers."""

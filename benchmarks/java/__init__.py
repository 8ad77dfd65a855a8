"""Side by side with Apache RocketMQ: `python -m benchmarks.java`."""

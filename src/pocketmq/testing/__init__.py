"""For tests of programs that use PocketMQ: a cluster to talk to, and a network to break."""

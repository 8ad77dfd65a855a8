"""PocketMQ inside other frameworks: web applications, task queues."""

"""RocketMQ 5's gRPC service in front of a cluster, for Apache's clients of all languages.

The translation between protobuf values and RocketMQ's own requests is sans-IO (`translation`); the
calls use the asyncio client to reach the cluster, ours or Apache's. Needs the extra `grpc`.
"""

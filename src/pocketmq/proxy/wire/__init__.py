"""The RocketMQ 5 protocol's protobuf messages, from `apache/rocketmq/v2/*.proto` (Apache-2.0).

`schema.binpb` and the stubs `*.pyi` are compiled from these files by `tools/grpc_schema.py`.
"""

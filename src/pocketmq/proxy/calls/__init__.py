"""The calls of the service, a file for each kind: protobuf requests in, responses out."""

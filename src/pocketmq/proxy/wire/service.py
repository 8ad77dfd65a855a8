"""The messages of `service.proto`; see `service.pyi` for their fields."""

from pocketmq.proxy.wire.schema import exported

globals().update(exported("service"))

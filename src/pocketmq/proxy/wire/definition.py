"""The messages of `definition.proto`; see `definition.pyi` for their fields."""

from pocketmq.proxy.wire.schema import exported

globals().update(exported("definition"))

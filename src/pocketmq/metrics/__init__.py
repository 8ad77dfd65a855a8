"""Prometheus metrics of clients, with `prometheus-client`; for OpenTelemetry see `pocketmq.otel`.

from pocketmq.metrics import ClientMetrics

metrics = ClientMetrics()
mq.Producer(address, group="shop", interceptors=[metrics.sends])
consumer = mq.PushConsumer(address, group="billing", interceptors=[metrics.handlers])
metrics.watch(consumer)
"""

from pocketmq.metrics.client_metrics import ClientMetrics

__all__ = ["ClientMetrics"]

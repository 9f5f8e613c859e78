"""What is seen from outside: one snapshot behind /healthz, /readyz, /metrics and /status."""

from parallel_consumer_runtime.observe.metrics import render_metrics
from parallel_consumer_runtime.observe.server import StatusServer
from parallel_consumer_runtime.observe.snapshot import Board, Snapshot

__all__ = ["Board", "Snapshot", "StatusServer", "render_metrics"]

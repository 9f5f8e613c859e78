"""Windows over what a consumer finished: pure rules, one decision at a time. Effects are the reconciler's."""

from parallel_consumer_operator.windows.deciding import decide

__all__ = ["decide"]

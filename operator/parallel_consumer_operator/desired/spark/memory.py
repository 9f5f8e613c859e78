"""Memory of driver and executor pods in MiB, reckoned as Spark does for Python applications."""

from parallel_consumer_runtime.settings.spark import SparkPodSpec

_OVERHEAD_MIN_MIB = 384
_OVERHEAD_PERCENT = 40
"""Spark's own factor for applications that are not the JVM's alone."""
_MIB = {"m": 1, "g": 1024}


def heap_mib(spec: SparkPodSpec) -> int:
    """Return the JVM's heap."""
    return _mib(spec.memory)


def overhead_mib(spec: SparkPodSpec) -> int:
    """Return what comes on top of the heap."""
    if spec.memory_overhead is not None:
        return _mib(spec.memory_overhead)
    return max(heap_mib(spec) * _OVERHEAD_PERCENT // 100, _OVERHEAD_MIN_MIB)


def pod_mib(spec: SparkPodSpec) -> int:
    """Return the pod's request and limit."""
    return heap_mib(spec) + overhead_mib(spec)


def _mib(written: str) -> int:
    return int(written[:-1]) * _MIB[written[-1].lower()]

"""Runs a manifest on this machine: the same manifest, settings and runtime as on a cluster, as local processes."""

from parallel_consumer_runtime.local.manifest import Manifest, ManifestError, load
from parallel_consumer_runtime.local.run import LocalRun, MemberView

__all__ = ["LocalRun", "Manifest", "ManifestError", "MemberView", "load"]

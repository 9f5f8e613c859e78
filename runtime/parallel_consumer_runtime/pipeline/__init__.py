"""Handlers made of processors with instances per process, partition or worker."""

from parallel_consumer_runtime.pipeline.pipelines import AsyncProcessor, Pipeline, ThreadPipeline, ThreadProcessor
from parallel_consumer_runtime.pipeline.scopes import Scope, ScopedHandler

__all__ = ["AsyncProcessor", "Pipeline", "Scope", "ScopedHandler", "ThreadPipeline", "ThreadProcessor"]

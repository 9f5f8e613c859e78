"""Finds the handler that a manifest names. Apart from the workers, because a handler's own process imports no event loop."""

import importlib
from typing import cast

from parallel_consumer_runtime.errors import PermanentError
from parallel_consumer_runtime.handlers import Handler


def load_handler(path: str) -> Handler:
    """Import `package.module:function`.

    Raises:
        PermanentError: naming spec.handler and what is wrong with it.
    """
    module_name, _, name = path.partition(":")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        msg = f"spec.handler: {module_name!r} cannot be imported ({type(error).__name__}: {error}); is it in the image?"
        raise PermanentError(msg) from error
    handler = getattr(module, name, None)
    if handler is None:
        msg = f"spec.handler: module {module_name!r} has no {name!r}"
        raise PermanentError(msg)
    if not callable(handler):
        msg = f"spec.handler: {path!r} is not callable"
        raise PermanentError(msg)
    return cast("Handler", handler)

"""Finds the handler that a manifest names. Apart from the workers, because a handler's own process imports no event loop."""

import importlib
from collections.abc import Callable
from typing import cast

from parallel_consumer_runtime.errors import PermanentError
from parallel_consumer_runtime.handlers import Handler


def load_handler(path: str) -> Handler:
    """Import the handler.

    Raises:
        PermanentError: naming spec.handler and what is wrong with it.
    """
    return cast("Handler", load_function(path, "spec.handler"))


def load_function(path: str, field: str) -> Callable[..., object]:
    """Import `package.module:function`.

    Raises:
        PermanentError: naming the field and what is wrong with it.
    """
    module_name, _, name = path.partition(":")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        msg = f"{field}: {module_name!r} cannot be imported ({type(error).__name__}: {error}); is it in the image?"
        raise PermanentError(msg) from error
    function: Callable[..., object] | None = getattr(module, name, None)
    if function is None:
        msg = f"{field}: module {module_name!r} has no {name!r}"
        raise PermanentError(msg)
    if not callable(function):
        msg = f"{field}: {path!r} is not callable"
        raise PermanentError(msg)
    return function

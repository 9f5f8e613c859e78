"""Free TCP ports on loopback, all different within one call."""

import contextlib
import socket


def free_ports(count: int) -> list[int]:
    """Return `count` ports that nobody listens on at this moment; another program may take one before the caller does."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]

"""Free TCP ports on loopback, all different within one call."""

import contextlib
import random
import socket

CANDIDATES = range(20_000, 32_000)
"""Below the range that Linux gives to outgoing connections, so that none of those takes a port before its listener."""


def free_ports(count: int) -> list[int]:
    """Return `count` ports that nobody listens on at this moment.

    Raises:
        AssertionError: too few of the candidates are free.
    """
    with contextlib.ExitStack() as held:
        ports: list[int] = []
        for port in random.sample(CANDIDATES, len(CANDIDATES)):
            one = held.enter_context(socket.socket())
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                one.close()
                continue
            ports.append(port)
            if len(ports) == count:
                return ports
    raise AssertionError(f"no {count} free ports on loopback")

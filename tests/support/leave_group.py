"""Removes a static member from its group: one LeaveGroup request, which no client library here can send.

A static member that closes keeps its place; a storm of rebalances, like a scale-in, needs it gone at once.
"""

import socket
import struct

LEAVE_GROUP = 13
VERSION = 3
"""The first that takes instance ids, and the last without compact strings."""
TIMEOUT_S = 10.0
UNKNOWN_MEMBER = 25


def leave_group(bootstrap: str, group: str, instance_id: str) -> bool:
    """Ask a cluster of one broker; return whether the member was there.

    Raises:
        AssertionError: the coordinator refused; holds the error code.
    """
    host, port = bootstrap.rsplit(":", 1)
    body = _string(group) + struct.pack(">i", 1) + _string("") + _string(instance_id)
    request = struct.pack(">hhi", LEAVE_GROUP, VERSION, 1) + _string("tests") + body
    with socket.create_connection((host, int(port)), TIMEOUT_S) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        (size,) = struct.unpack(">i", _exactly(connection, 4))
        reply = _exactly(connection, size)
    errors = {int.from_bytes(reply[8:10]), int.from_bytes(reply[-2:])}  # the group's and the member's
    if not errors <= {0, UNKNOWN_MEMBER}:
        raise AssertionError(f"LeaveGroup for {instance_id} was refused with {errors}")
    return errors == {0}


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text.encode())) + text.encode()


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise ConnectionError("the broker closed the connection")
        data += piece
    return data

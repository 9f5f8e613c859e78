"""The demo, as `make demo` runs it: piped, and on a terminal."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[2] / "examples" / "flights" / "demo.py"
pytestmark = pytest.mark.acceptance


def test_the_demo_holds_its_promises_piped() -> None:
    """Exit status 0 says that every promised figure was seen; the lines show them."""
    ran = subprocess.run([sys.executable, str(DEMO)], capture_output=True, text=True, timeout=170, check=False)
    print(ran.stdout[-3000:])
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "336,776 of 336,776" in ran.stdout


def test_the_demo_holds_its_promises_on_a_terminal() -> None:
    """On a terminal it shows a live table, and ends the same."""
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, str(DEMO)],
        stdin=subprocess.DEVNULL,
        stdout=terminal,
        stderr=terminal,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "110"},
    )
    os.close(terminal)
    shown = bytearray()
    while True:
        try:
            piece = os.read(controller, 65536)
        except OSError:  # the terminal's other side is closed: the demo ended
            break
        if not piece:
            break
        shown += piece
    os.close(controller)
    assert process.wait(30) == 0, shown[-4000:].decode(errors="replace")
    assert b"336,776 of 336,776" in shown
    assert b"flights-0" in shown

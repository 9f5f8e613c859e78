"""Child processes of tests: they die with the tests, their output is kept in capped files, every wait has an end."""

import collections
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Self

OUTPUT_BYTES_MAX = 4 * 1024**2
TAIL_LINES = 60
LAUNCHER = Path(__file__).with_name("tied.py")
REPOSITORY = Path(__file__).resolve().parents[2]


class TiedProcess:
    """One command, started at once; killed by the kernel when the thread's process dies, however it dies.

    The kernel counts the death of the starting *thread*: start it from a thread that outlives the command.
    Standard output and error go to one file, of which the first `OUTPUT_BYTES_MAX` bytes are kept, and to a tail of
    the last lines for error messages.
    """

    def __init__(
        self, command: Sequence[str], output: Path, *, env: Mapping[str, str] | None = None, cwd: Path = REPOSITORY
    ) -> None:
        """Start the command.

        Args:
            command: the program and its arguments; its process id is `pid`, not a wrapper's.
            output: where stdout and stderr go; appended to.
            env: the whole environment; this process's when None.
            cwd: the folder it runs in.
        """
        self.command = list(command)
        self.output = output
        self._tail: collections.deque[str] = collections.deque(maxlen=TAIL_LINES)
        # -I -S: the launcher needs no packages, and nothing of the environment may reach it before the command does.
        launcher = [sys.executable, "-I", "-S", str(LAUNCHER), str(os.getpid())]
        self._process = subprocess.Popen(
            [*launcher, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=None if env is None else dict(env),
            cwd=cwd,
        )
        stream = self._process.stdout
        if stream is None:
            raise AssertionError("a pipe was asked for")
        self._reader = threading.Thread(target=self._keep, args=(stream,), name=f"output-{self.pid}", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """The process id of the command itself."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""
        return self._process.poll()

    def send(self, signal_number: signal.Signals) -> None:
        """Send a signal; one that ended already is left alone."""
        self._process.send_signal(signal_number)

    def wait(self, timeout_s: float) -> int:
        """Return the exit status, with all output kept.

        Raises:
            AssertionError: it still runs after `timeout_s` seconds; holds the last lines of output.
        """
        try:
            code = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {timeout_s:g} s: {self.command[-3:]}\n{self.tail()}") from None
        self._reader.join(5)
        return code

    def end(self, grace_s: float = 10.0) -> None:
        """Terminate it, kill it after `grace_s` seconds, and reap it. Calling it twice is fine."""
        if self.exit_code is None:
            self.send(signal.SIGCONT)
            self.send(signal.SIGTERM)
            try:
                self._process.wait(grace_s)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self.wait(10)

    def tail(self) -> str:
        """Return the last lines of its output, for error messages."""
        return "".join(list(self._tail))

    def text(self) -> str:
        """Return all kept output; complete once `wait` returned."""
        return self.output.read_text(errors="replace")

    def _keep(self, stream: IO[bytes]) -> None:
        kept = 0
        with stream, self.output.open("ab", buffering=0) as file:
            for line in stream:
                self._tail.append(line.decode(errors="replace"))
                if kept < OUTPUT_BYTES_MAX:
                    file.write(line)
                    kept += len(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

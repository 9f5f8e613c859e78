"""The command `pconsumer`. What a verb needs is imported when it runs, so that help is quick."""

import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from parallel_consumer_runtime import __version__
from parallel_consumer_runtime.offsets import Line
from parallel_consumer_runtime.replay import verbs

USAGE_STATUS = 2

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
offsets_app = typer.Typer(
    no_args_is_help=True, help="Show and move a group's positions; read and write the maps of its commits."
)
app.add_typer(offsets_app, name="offsets")
offsets_app.command("show")(verbs.show)
offsets_app.command("reset")(verbs.reset)
app.command("replay")(verbs.replay)


def _fail(message: str, status: int) -> NoReturn:
    for line in message.splitlines():
        typer.echo(f"error: {line}", err=True)
    raise typer.Exit(status)


def _version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it so
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(
    *,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True)] = False,
) -> None:
    """Handle many records of one Kafka partition at a time, in key order, losing nothing."""


@app.command()
def run(
    *,
    manifest: Annotated[Path, typer.Option("--manifest", "-f", help="A file with one ParallelConsumer.")],
    replicas: Annotated[int | None, typer.Option(min=1, help="Members, instead of the manifest's replicas.")] = None,
    embedded: Annotated[bool, typer.Option("--embedded", help="Start a broker in this process and use it.")] = False,
    bootstrap_servers: Annotated[str | None, typer.Option(help="Brokers, instead of the manifest's.")] = None,
    path: Annotated[Path | None, typer.Option(help="Where the handler's package lies; the manifest's folder.")] = None,
    until_drained: Annotated[bool, typer.Option("--until-drained", help="End when nothing is left to handle.")] = False,
) -> None:
    """Run a manifest as local processes: the same settings and runtime as on a cluster.

    Edits of the manifest's live half (concurrency, retry, buffer, commit interval, paused) are applied while it runs.
    Ctrl-C drains and ends; twice, it ends without waiting for records in flight.
    """
    from parallel_consumer_runtime.local.command import StopRequest, run_manifest  # noqa: PLC0415 - see the module's first line

    if embedded and bootstrap_servers is not None:
        _fail("--embedded brings its own broker: leave out --bootstrap-servers", USAGE_STATUS)
    request = StopRequest()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, request.signalled)
    if message := run_manifest(
        manifest,
        replicas=replicas,
        embedded=embedded,
        bootstrap=bootstrap_servers,
        handler_path=path,
        until_drained=until_drained,
        request=request,
    ):
        _fail(message, 1)


@app.command()
def consume() -> None:
    """Run one member, with settings from the environment: what a pod does."""
    from parallel_consumer_runtime.process import main as run_member  # noqa: PLC0415 - see the module's first line

    raise typer.Exit(run_member())


def _print(lines: Iterable[Line]) -> None:
    good = True
    for line in lines:
        typer.echo(line.text)
        good = good and line.good
    if not good:
        raise typer.Exit(1)


_Source = Annotated[
    typer.FileText, typer.Argument(help="A file, or - for standard input.", encoding="utf-8", errors="backslashreplace")
]


@offsets_app.command("decode")
def decode(source: _Source) -> None:
    """Read lines of BASE METADATA; print each map as JSON, its incomplete ranges inclusive."""
    from parallel_consumer_runtime.offsets import decode_lines  # noqa: PLC0415 - see the module's first line

    _print(decode_lines(source))


@offsets_app.command("encode")
def encode(source: _Source) -> None:
    """Read lines of JSON as `decode` prints them; print the metadata of each."""
    from parallel_consumer_runtime.offsets import encode_lines  # noqa: PLC0415 - see the module's first line

    _print(encode_lines(source))


def main() -> int:
    """Run the command line. Return the exit status."""
    try:
        app(prog_name="pconsumer")
    except SystemExit as ending:
        return ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    return 0


if __name__ == "__main__":
    sys.exit(main())

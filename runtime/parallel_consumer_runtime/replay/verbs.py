"""The options of `offsets show`, `offsets reset` and `replay`. What they need is imported when they run."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from parallel_consumer_runtime.errors import PermanentError, RuntimeFailure

_Manifest = Annotated[Path, typer.Option("--manifest", "-f", help="A file with one ParallelConsumer.")]
_Bootstrap = Annotated[
    str | None, typer.Option("--bootstrap-servers", "--bootstrap", help="Brokers, instead of the manifest's.")
]
_Topic = Annotated[str | None, typer.Option(help="One of the manifest's topics; all of them.")]
_Partitions = Annotated[
    list[int] | None, typer.Option("--partition", min=0, help="A partition; may be given again; all of them.")
]
_Json = Annotated[bool, typer.Option("--json", help="Print one line of JSON.")]


def show(
    *,
    manifest: _Manifest,
    bootstrap: _Bootstrap = None,
    topic: _Topic = None,
    as_json: _Json = False,
) -> None:
    """Show how a manifest's group stands in each partition: a table, or tab-separated lines when piped.

    LAG counts the offsets in the log that are not complete, by the map in the commit; HEAD-OF-LINE is the first of them.
    """

    def run() -> None:
        from parallel_consumer_runtime.replay import offsets_command  # noqa: PLC0415 - see the module's first line

        offsets_command.show(manifest, bootstrap=bootstrap, topic=topic, as_json=as_json)

    _run(run)


def reset(
    *,
    manifest: _Manifest,
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="To the log's start.")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="To the log's end.")] = False,
    to_time: Annotated[
        str | None, typer.Option(help="To the first record that is not older, as an ISO time with zone.")
    ] = None,
    to_offset: Annotated[int | None, typer.Option(min=0, help="To an offset.")] = None,
    shift: Annotated[int | None, typer.Option(help="By so many offsets from the commit; back when negative.")] = None,
    topic: _Topic = None,
    partition: _Partitions = None,
    execute: Annotated[bool, typer.Option("--execute", help="Do it. Without this nothing is changed.")] = False,
    bootstrap: _Bootstrap = None,
    as_json: _Json = False,
) -> None:
    """Move a stopped group to another position; without --execute, print what that would do.

    The maps of completed offsets are dropped: what lies above the new position is handled again. A group that has
    members is refused.
    """

    def run() -> None:
        from parallel_consumer_runtime.replay import offsets_command  # noqa: PLC0415 - see the module's first line
        from parallel_consumer_runtime.replay.places import Kind, Place, parse_time  # noqa: PLC0415 - as above

        places = [
            *([Place(Kind.EARLIEST)] if to_earliest else []),
            *([Place(Kind.LATEST)] if to_latest else []),
            *([parse_time(to_time, "--to-time")] if to_time is not None else []),
            *([Place(Kind.OFFSET, to_offset)] if to_offset is not None else []),
            *([Place(Kind.SHIFT, shift)] if shift is not None else []),
        ]
        if len(places) != 1:
            msg = "give one of --to-earliest, --to-latest, --to-time, --to-offset and --shift, and only one"
            raise PermanentError(msg)
        offsets_command.reset(
            manifest,
            places[0],
            bootstrap=bootstrap,
            topic=topic,
            partitions=partition or [],
            execute=execute,
            as_json=as_json,
        )

    _run(run)


def replay(
    *,
    manifest: _Manifest,
    start: Annotated[str, typer.Option("--from", help="earliest, latest, offset:N or an ISO time: the first record.")],
    end: Annotated[str, typer.Option("--to", help="The same: the first record that is left out.")],
    topic: _Topic = None,
    partition: _Partitions = None,
    concurrency: Annotated[
        int | None, typer.Option(min=1, max=10_000, help="Records at once, always, instead of the manifest's.")
    ] = None,
    no_results: Annotated[bool, typer.Option("--no-results", help="Drop what the handler returns.")] = False,
    bootstrap: _Bootstrap = None,
    path: Annotated[Path | None, typer.Option(help="Where the handler's package lies; the manifest's folder.")] = None,
) -> None:
    """Handle a range of records once more, outside the group: nothing is committed, and the group may run meanwhile.

    The manifest's handler, worker, ordering, concurrency, retry policy and dead-letter topic apply. It ends when every record of the
    range is complete. Ctrl-C finishes what is in flight and ends.
    """

    def run() -> None:
        from parallel_consumer_runtime.replay import command  # noqa: PLC0415 - see the module's first line

        command.replay(
            manifest,
            start=start,
            end=end,
            topic=topic,
            partitions=partition or [],
            concurrency=concurrency,
            results=not no_results,
            bootstrap=bootstrap,
            handler_path=path,
        )

    _run(run)


def _run(verb: Callable[[], None]) -> None:
    try:
        verb()
    except RuntimeFailure as failure:
        _fail(failure)


def _fail(failure: RuntimeFailure) -> NoReturn:
    for line in str(failure).splitlines():
        typer.echo(f"error: {line}", err=True)
    raise typer.Exit(failure.exit_status)

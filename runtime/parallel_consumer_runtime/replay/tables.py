"""Rows for people, programs and pipes: a table on a terminal, tab-separated lines elsewhere, JSON when asked."""

import json
from collections.abc import Mapping, Sequence
from typing import TextIO

from rich.console import Console
from rich.table import Table

Cell = int | str | None
"""None is what nobody knows: a dash for people, null for programs."""


def print_rows(
    columns: Mapping[str, str], rows: Sequence[Mapping[str, Cell]], title: str, out: TextIO, *, total: str | None = None
) -> None:
    """Print a table on a terminal, else a line of names and one tab-separated line per row.

    Args:
        columns: the rows' fields in order, and their headings.
        rows: what to print.
        title: above the table; not printed elsewhere.
        out: where to.
        total: below the table; not printed elsewhere.
    """
    console = Console(file=out, markup=False, highlight=False)
    if not console.is_terminal:
        out.write("\t".join(columns.values()) + "\n")
        out.writelines("\t".join(_plain(row[field]) for field in columns) + "\n" for row in rows)
        return
    table = Table(title=title, title_justify="left", header_style="bold", caption=total, caption_justify="left")
    for field, heading in columns.items():
        numbers = all(not isinstance(row[field], str) for row in rows)
        table.add_column(heading, justify="right" if numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_shown(row[field]) for field in columns))
    console.print(table)


def print_json(document: object, out: TextIO) -> None:
    """Print one line of JSON."""
    out.write(json.dumps(document, separators=(",", ":")) + "\n")


def _plain(cell: Cell) -> str:
    return "-" if cell is None else str(cell)


def _shown(cell: Cell) -> str:
    return f"{cell:,}" if isinstance(cell, int) else _plain(cell)

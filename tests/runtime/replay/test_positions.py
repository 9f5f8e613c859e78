"""Places, standings and moves: the arithmetic under `pconsumer offsets` and `pconsumer replay`."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parallel_consumer_runtime.core import PartitionKey
from parallel_consumer_runtime.errors import PermanentError
from parallel_consumer_runtime.kafka.librdkafka import Position
from parallel_consumer_runtime.kafka.logs import LogBounds
from parallel_consumer_runtime.offsets import OffsetMap, encode
from parallel_consumer_runtime.replay.moves import plan_moves
from parallel_consumer_runtime.replay.offsets_command import choose
from parallel_consumer_runtime.replay.places import Kind, Place, parse_place, parse_time, resolve
from parallel_consumer_runtime.replay.standing import Standing, standing, total_lag
from parallel_consumer_runtime.replay.tables import print_json, print_rows
from parallel_consumer_runtime.settings import AutoOffsetReset

KEY = PartitionKey("orders", 3)
LOG = LogBounds(100, 200)


def stands(offset: int, metadata: str = "", reset: AutoOffsetReset = AutoOffsetReset.EARLIEST) -> Standing:
    """Return how a group with this commit stands in offsets 100 to 199."""
    return standing(KEY, Position(*KEY, offset, metadata), LOG, reset)


def mapped(base: int, highest: int, *incomplete: tuple[int, int]) -> Standing:
    """Return how a group with a map stands."""
    return stands(base, encode(OffsetMap(base, highest, incomplete)))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("earliest", Place(Kind.EARLIEST)),
        ("latest", Place(Kind.LATEST)),
        ("offset:0", Place(Kind.OFFSET, 0)),
        ("offset:123", Place(Kind.OFFSET, 123)),
        ("2026-01-02T03:04:05Z", Place(Kind.TIME, 1_767_323_045_000)),
        ("2026-01-02T05:04:05.250+02:00", Place(Kind.TIME, 1_767_323_045_250)),
    ],
)
def test_the_four_ways_to_name_a_place(text: str, place: Place) -> None:
    """Words, an offset, and a time with its zone."""
    assert parse_place(text, "--from") == place


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("offset:-1", "--from: '-1' is no offset"),
        ("offset:", "--from: '' is no offset"),
        ("offset:99999999999999999999", "is no offset"),
        ("Earliest", "write earliest, latest, offset:N or a time such as"),
        ("2026-01-02T03:04:05", "has no zone; append Z"),
        ("yesterday", "--from: 'yesterday' is not understood"),
    ],
)
def test_what_names_no_place_is_refused_with_the_forms_that_do(text: str, says: str) -> None:
    """One sentence: the option, what was written, and what to write."""
    with pytest.raises(PermanentError) as refused:
        parse_place(text, "--from")
    assert says in str(refused.value)
    assert str(refused.value).startswith("--from: ")


def test_a_reset_takes_times_alone() -> None:
    """`--to-time` does not offer the other forms."""
    with pytest.raises(PermanentError) as refused:
        parse_time("latest", "--to-time")
    assert str(refused.value) == "--to-time: 'latest' is not understood; write a time such as 2026-01-02T03:04:05Z"


@pytest.mark.parametrize(
    ("place", "offset", "note"),
    [
        (Place(Kind.EARLIEST), 100, ""),
        (Place(Kind.LATEST), 200, ""),
        (Place(Kind.OFFSET, 150), 150, ""),
        (Place(Kind.OFFSET, 7), 100, "7 is gone: the log's start"),
        (Place(Kind.OFFSET, 999), 200, "999 is not there yet: the log's end"),
        (Place(Kind.SHIFT, -10), 140, ""),
        (Place(Kind.SHIFT, -99), 100, "51 is gone: the log's start"),
    ],
)
def test_a_place_is_clamped_to_the_log_and_says_so(place: Place, offset: int, note: str) -> None:
    """Never outside of what the log holds."""
    assert resolve(place, LOG, committed=150) == (offset, note)


def test_a_time_after_every_record_is_the_logs_end() -> None:
    """A broker has no offset for it."""
    place = Place(Kind.TIME, 1)
    assert resolve(place, LOG, at_time=120) == (120, "")
    assert resolve(place, LOG, at_time=None) == (200, "every record is older: the log's end")


def test_the_lag_leaves_out_what_the_map_calls_complete() -> None:
    """Committed 150, map up to 169 with three gaps of 150, 155 to 157 and 160: 15 complete above, 35 to do."""
    one = mapped(150, 169, (150, 150), (155, 157), (160, 160))
    assert (one.lag, one.complete_above, one.incomplete, one.head_of_line, one.note) == (35, 15, 5, 150, "")


def test_where_nothing_is_committed_the_reset_policy_says_what_is_left() -> None:
    """Earliest: everything; Latest: nothing; Error: nobody knows, and so the total is unknown too."""
    earliest, latest, error = (stands(-1001, reset=reset) for reset in AutoOffsetReset)
    assert (earliest.lag, earliest.head_of_line) == (100, 100)
    assert (latest.lag, latest.head_of_line) == (0, None)
    assert (error.lag, error.head_of_line) == (None, None)
    assert total_lag([earliest, latest]) == 100
    assert total_lag([earliest, error]) is None


@pytest.mark.parametrize(("offset", "says"), [(40, "is gone from the log"), (201, "is beyond the log's end")])
def test_a_commit_outside_of_the_log_is_named(offset: int, says: str) -> None:
    """A member would begin where the reset policy says."""
    one = stands(offset)
    assert one.lag == 100
    assert one.note == f"the committed offset {says}: autoOffsetReset Earliest applies"
    assert stands(offset, reset=AutoOffsetReset.LATEST).lag == 0


@pytest.mark.parametrize("metadata", ["no map", "TAAA"])
def test_a_map_that_cannot_be_read_counts_as_none(metadata: str) -> None:
    """As a member would do: its records are handled again."""
    one = stands(150, metadata)
    assert (one.lag, one.complete_above, one.incomplete) == (50, 0, 0)
    assert "the map cannot be read" in one.note


def test_a_move_back_says_what_is_handled_again() -> None:
    """50 below the commit, and the 15 above it that only the dropped map knows of."""
    (move,) = plan_moves([mapped(150, 169, (150, 150), (155, 157), (160, 160))], Place(Kind.EARLIEST), {})
    assert (move.before, move.after, move.handled_again, move.never_handled) == (150, 100, 65, 0)
    assert move.position == Position("orders", 3, 100, "")


def test_a_move_forward_says_what_is_never_handled() -> None:
    """To 158: incomplete are 150 and 155 to 157; complete above it are 158, 159 and 161 to 169."""
    one = mapped(150, 169, (150, 150), (155, 157), (160, 160))
    (move,) = plan_moves([one], Place(Kind.OFFSET, 158), {})
    assert (move.handled_again, move.never_handled) == (11, 4)
    (end,) = plan_moves([one], Place(Kind.LATEST), {})
    assert (end.handled_again, end.never_handled) == (0, 35)


def test_a_move_to_the_same_offset_still_drops_the_map() -> None:
    """A shift by nothing makes what was complete above the commit be handled again."""
    (move,) = plan_moves([mapped(150, 169, (150, 150))], Place(Kind.SHIFT, 0), {})
    assert (move.before, move.after, move.handled_again, move.never_handled) == (150, 150, 19, 0)


def test_there_is_no_shift_from_nothing() -> None:
    """The partition stays as it is, and says why."""
    (move,) = plan_moves([stands(-1001)], Place(Kind.SHIFT, -5), {})
    assert (move.after, move.position) == (None, None)
    assert "nothing is committed" in move.note


def test_a_commit_below_the_log_counts_only_what_the_log_holds() -> None:
    """What retention took can neither be handled again nor be skipped."""
    (back,) = plan_moves([stands(40)], Place(Kind.EARLIEST), {})
    assert (back.after, back.handled_again, back.never_handled) == (100, 0, 0)
    (on,) = plan_moves([stands(40)], Place(Kind.LATEST), {})
    assert (on.after, on.handled_again, on.never_handled) == (200, 0, 100)


@given(st.data())
def test_counts_agree_with_a_set_of_offsets(data: st.DataObject) -> None:
    """Against a model: the set of complete offsets, for any map, any log and any target."""
    start = data.draw(st.integers(0, 30))
    end = data.draw(st.integers(start, 60))
    log = LogBounds(start, end)
    base = data.draw(st.integers(start, end))
    highest = data.draw(st.integers(base - 1, end - 1)) if base < end else base - 1
    complete = {offset for offset in range(base, highest + 1) if offset == highest or data.draw(st.booleans())}
    gaps = [o for o in range(base, highest + 1) if o not in complete]
    ranges: list[tuple[int, int]] = []
    for offset in gaps:
        if ranges and ranges[-1][1] == offset - 1:
            ranges[-1] = (ranges[-1][0], offset)
        else:
            ranges.append((offset, offset))
    metadata = encode(OffsetMap(base, highest, tuple(ranges)))
    one = standing(KEY, Position(*KEY, base, metadata), log, AutoOffsetReset.ERROR)
    done = complete | set(range(start, base))
    assert one.lag == sum(o not in done for o in range(start, end))
    target = data.draw(st.integers(start, end))
    (move,) = plan_moves([one], Place(Kind.OFFSET, target), {})
    assert move.handled_again == sum(o in done for o in range(target, end))
    assert move.never_handled == sum(o not in done for o in range(start, target))


def test_options_choose_partitions() -> None:
    """All, a topic's, or some; what fits nothing is named."""
    keys = [PartitionKey("a", 0), PartitionKey("a", 1), PartitionKey("b", 0)]
    assert choose(keys, None, ()) == keys
    assert choose(keys, "a", ()) == keys[:2]
    assert choose(keys, "a", [1]) == [keys[1]]
    assert choose(keys[:2], None, [1]) == [keys[1]]
    for topic, partitions, says in (
        ("c", [], "--topic: the manifest does not consume 'c'; it consumes a, b"),
        (None, [0], "--partition: of which topic? Name it with --topic: a, b"),
        ("b", [1], "--partition: b has no partition 1; it has 1"),
    ):
        with pytest.raises(PermanentError) as refused:
            choose(keys, topic, partitions)
        assert str(refused.value) == says


def test_rows_for_pipes_and_programs() -> None:
    """Tab-separated with names, a dash for what nobody knows; JSON says null."""
    out = io.StringIO()
    print_rows({"a": "A", "b": "B"}, [{"a": 1000, "b": None}, {"a": 0, "b": "x y"}], "title", out)
    assert out.getvalue() == "A\tB\n1000\t-\n0\tx y\n"
    out = io.StringIO()
    print_json({"b": None}, out)
    assert json.loads(out.getvalue()) == {"b": None}


def test_a_terminal_gets_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a title, thousands apart, a dash for what nobody knows, the total below, and brackets as they are."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    out = io.StringIO()
    rows: list[dict[str, int | str | None]] = [{"lag": 12345, "note": "[bold]map[/]"}, {"lag": None, "note": ""}]
    print_rows({"lag": "LAG", "note": "NOTE"}, rows, "group orders", out, total="lag unknown")
    shown = out.getvalue()
    assert all(text in shown for text in ("group orders", "LAG", "12,345", " - ", "[bold]map[/]", "lag unknown"))
    assert "\t" not in shown

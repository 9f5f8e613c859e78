"""The codec beside the slow reader of the format: kept inputs of the fuzzer, its seeds, and decoders that are wrong on purpose."""

import base64
from collections.abc import Callable
from pathlib import Path

import pytest

from parallel_consumer_runtime.offsets import OffsetMap, OffsetMetadataError, decode
from tests.support.metadata_fuzz import seeds as seeds_module
from tests.support.metadata_fuzz.inputs import Case, Kind, case, data
from tests.support.metadata_fuzz.oracle import BrokenError, Tally, check, ours
from tests.support.metadata_fuzz.seeds import edges, keep, kept, seeds


@pytest.mark.proves(7)
@pytest.mark.parametrize("content", [*seeds(), *edges()], ids=lambda content: content[:12].hex())
def test_the_codec_and_the_slow_reader_agree(content: bytes) -> None:
    """The same map or refused, nothing but the typed error, a ledger that calls nothing else complete, 5 ms."""
    check(case(content), Tally())


def test_there_are_maps_and_each_refusal_among_them() -> None:
    """The inputs are not all refused at the door."""
    tally = Tally()
    for content in [*seeds(), *edges()]:
        check(case(content), tally)
    assert set(tally.by_outcome) == {"map", "EnvelopeError", "CompressionError", "BodyError"}
    assert min(tally.by_outcome.values()) >= 10


def _one_too_far(given: Case) -> OffsetMap:
    found = ours(given)
    return OffsetMap(found.base, found.highest + 1, found.incomplete) if found.incomplete else found


def _forgets_the_last_range(given: Case) -> OffsetMap:
    found = ours(given)
    return OffsetMap(found.base, found.highest, found.incomplete[:-1])


def _forgets_the_log(given: Case) -> OffsetMap:
    return decode(given.metadata, given.base)


def _overlooks_what_follows(given: Case) -> OffsetMap:
    try:
        return ours(given)
    except OffsetMetadataError:
        return decode(given.metadata[: len(given.metadata) // 4 * 4 - 4], given.base, log_end=given.log_end)


def _lenient_base64(given: Case) -> OffsetMap:
    try:
        text = base64.b64encode(base64.b64decode(given.metadata.encode("ascii", "ignore") + b"==")).decode()
    except ValueError:
        text = given.metadata
    return decode(text, given.base, log_end=given.log_end)


def _raises_another_error(given: Case) -> OffsetMap:
    return ours(given) if given.metadata.isascii() else decode(given.metadata.encode("ascii").decode(), given.base)


def _refuses_long_maps(given: Case) -> OffsetMap:
    found = ours(given)
    if found.span > 1000:
        raise OffsetMetadataError
    return found


def _slow_for_many_ranges(given: Case) -> OffsetMap:
    found = ours(given)
    for _ in range(8 if len(found.incomplete) > 3000 else 0):
        sum(sorted(str(first) for first, _ in found.incomplete).count(str(last)) for last in range(3))
    return found


@pytest.mark.parametrize(
    "wrong",
    [
        _one_too_far,
        _forgets_the_last_range,
        _forgets_the_log,
        _overlooks_what_follows,
        _lenient_base64,
        _raises_another_error,
        _refuses_long_maps,
        _slow_for_many_ranges,
    ],
)
def test_a_wrong_decoder_is_found(wrong: Callable[[Case], OffsetMap]) -> None:
    """The judge bites: each mistake shows with the seeds alone."""
    with pytest.raises(BrokenError):
        _check_all(wrong)


def _check_all(decoder: Callable[[Case], OffsetMap]) -> None:
    for content in [*seeds(), *edges()]:
        check(case(content), Tally(), decoder)


def test_what_broke_something_is_kept_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An input is appended with what it was, and read as a seed from then on."""
    monkeypatch.setattr(seeds_module, "KEPT", tmp_path / "kept.txt")
    seeds_module.KEPT.write_text("# nothing yet\n")
    content = data(Kind.CONTENT, b"l\x00", 100, 11)
    assert keep(content, "raised")
    assert not keep(content, "raised again")
    assert kept() == [content]
    assert content in seeds()

"""The codec's text form: one line in, one line out."""

import json

from parallel_consumer_runtime.offsets import decode_lines, encode_lines


def test_decodes_and_encodes_lines() -> None:
    """What one direction writes, the other reads."""
    (line,) = decode_lines(["0 bAALLgIA\n"])
    assert line.good
    assert line.text == '{"base":0,"highest":10,"incomplete":[[0,0],[4,4],[6,8],[10,10]]}'
    (back,) = encode_lines([line.text])
    assert back.good
    assert back.text == "bAALLgIA"


def test_nothing_is_a_line_too() -> None:
    """A commit without metadata says nothing above its base."""
    (line,) = decode_lines(["7\n"])
    assert json.loads(line.text) == {"base": 7, "highest": 6, "incomplete": []}
    assert [line.text for line in encode_lines([line.text])] == [""]


def test_an_unreadable_line_is_an_error_and_the_rest_goes_on() -> None:
    """Each unreadable line gives one error in its place."""
    lines = list(decode_lines(["x bAALLgIA", "0 !", "0 bAALLgIA", "-1 bAALLgIA"]))
    assert [line.good for line in lines] == [False, False, True, False]
    assert all("error" in json.loads(line.text) for line in lines if not line.good)
    wrong = [
        "{",
        "[]",
        '{"base":0,"highest":3}',
        '{"base":0,"highest":3,"incomplete":[[2,1]]}',
        '{"base":0,"highest":3,"incomplete":7}',
    ]
    assert [line.good for line in encode_lines(wrong)] == [False] * 5

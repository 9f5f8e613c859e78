"""One process of the fuzzer: `python -m tests.support.metadata_fuzz.child CORPUS FIGURES BROKEN INPUTS SECONDS SEED`.

Ends by itself after so many inputs or seconds. What breaks something lies in BROKEN; libFuzzer ends the process.
"""

import gc
import json
import os
import sys
import time
from importlib import import_module
from pathlib import Path

import atheris
from atheris.import_hook import instrument_imports

with instrument_imports(include=["parallel_consumer_runtime.offsets"]):
    import_module("parallel_consumer_runtime.offsets")

from parallel_consumer_runtime.process import GC_THRESHOLDS
from tests.support.metadata_fuzz.inputs import case
from tests.support.metadata_fuzz.oracle import BrokenError, Tally, check
from tests.support.metadata_fuzz.seeds import edges

TELL_EVERY = 512
LENGTH_MAX = 400
"""Bytes of one input; repeating patterns make metadata of any length of them."""


def main() -> None:
    """Fuzz until it is enough. Never returns."""
    corpus, figures, broken = map(Path, sys.argv[1:4])
    inputs_max, seconds_max, seed = map(int, sys.argv[4:7])
    tally = Tally()
    began = time.monotonic()

    def tell() -> None:
        half = figures.with_suffix(".new")
        half.write_text(
            json.dumps({"inputs": tally.inputs, "outcomes": tally.by_outcome, "slowest_s": tally.slowest_s})
        )
        half.replace(figures)

    def one_input(content: bytes) -> None:
        try:
            check(case(content), tally)
        except BrokenError as error:
            (broken / f"{os.getpid()}.why").write_text(str(error))
            (broken / f"{os.getpid()}.input").write_bytes(content)
            tell()
            raise
        if tally.inputs % TELL_EVERY == 0 or tally.inputs >= inputs_max:
            enough = tally.inputs >= inputs_max or (seconds_max and time.monotonic() - began >= seconds_max)
            if enough or tally.inputs % (TELL_EVERY * 8) == 0:
                tell()
            if enough:
                os._exit(0)

    gc.collect()
    gc.freeze()  # as a member does; the collector's rounds are no part of reading
    gc.set_threshold(*GC_THRESHOLDS)
    for content in edges():
        one_input(content)
    options = [
        *("-verbosity=0", "-timeout=300", "-rss_limit_mb=1500", "-detect_leaks=0", f"-max_len={LENGTH_MAX}"),
        *(f"-artifact_prefix={broken}/", f"-seed={seed}"),
    ]
    atheris.Setup([sys.argv[0], *options, str(corpus)], one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()

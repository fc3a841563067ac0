"""Causes in words: is what was done to a file, by a quantizer, or by a program to its results, in the answer?

    python bench/causes.py [--only WORD ...]

Forty files and programs with one mistake each, more than half of them nothing was built on: the summary must name the
place and what was done. Sound ones, and some whose fault is another: none of these causes may be told.
"""

import argparse
import re
import sys
import tempfile
import time
from pathlib import Path

from causes_cases import MISTAKES, UNSEEN, CauseCase, sound

from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.workflows.diagnosis.diagnose import diagnose
from tensortriage.workflows.requests import DiagnoseRequest

CAUSES = (
    "made of c", "multiplied by", "moved by", "and padding", "first .* of .* numbers", "plus 1", "constant '.*' where",
    "do not depend", "exchanged", "rank ", "holds '", "rounded (down|up|towards)", "scales of its channels",
    "reciprocal", "calibrated on inputs", "threshold", "sorted", "instead of", "bits before", "bytes kept",
    "0 everywhere",
)  # fmt: skip
"""Words of these causes."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[], metavar="WORD", help="cases whose names have one of the words")
    only = parser.parse_args().only
    built, unseen, right = (
        [case for case in cases if not only or any(word in case.name for word in only)]
        for cases in (MISTAKES, UNSEEN, tuple(sound()))
    )
    told, anew, silent = (sum(map(asked, cases)) for cases in (built, unseen, right))
    print(f"{told} of {len(built)} causes told that were built on, {anew} of {len(unseen)} others; "
          f"{len(right) - silent} of {len(right)} sound or otherwise wrong told one")  # fmt: skip
    sys.exit(silent < len(right) or told + anew < 0.9 * (len(built) + len(unseen)))


def asked(case: CauseCase) -> bool:
    """Print what is said of a case; return whether it is right."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        given = case.write(folder)
        verdict = diagnose(
            DiagnoseRequest(
                model=folder / "model.onnx", feeding=FeedRequest(paths=[str(folder / "inputs.npz")]),
                case=folder / "case", random_too=False, repro=False, builds=0, **given,  # type: ignore[arg-type] # as written
            )
        )  # fmt: skip
    if case.said:
        right = all(re.search(word, verdict.summary) for word in case.said)
    else:
        right = not any(re.search(word, verdict.summary) for word in CAUSES)
    print(f"{'right' if right else 'MISS ':5} {case.name:40} {verdict.verdict:20} "
          f"{time.perf_counter() - began:5.1f} s", flush=True)  # fmt: skip
    if not right:
        print(f"      {verdict.summary}", flush=True)
    return right


if __name__ == "__main__":
    main()

"""Wrong preprocessing through `triage diagnose`: is what the program does to its inputs named, and nobody else accused?

    python bench/feeds.py [--only WORD ...]

Seventy-odd programs that feed a network something else than they are given (channels, numbers, layouts, crops, tokens,
masks; two at once), on six small networks, most of which show outputs alone: kind and parameters must be told. Sixty
pairs that are honest, or have another fault (an op, a weight, a format): none may be said to be fed another input.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from feeds_cases import FeedCase, honest, planted

from tensortriage.diagnose.state.verdict import Verdict
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.workflows.diagnosis.diagnose import diagnose
from tensortriage.workflows.requests import DiagnoseRequest

QUESTIONS = ("does the target run on the input it is given?", "does another input explain the outputs?")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[], metavar="WORD", help="cases whose names have one of the words")
    parser.add_argument("--missed", type=float, default=0.05, help="largest share of mistakes that may be missed")
    only = parser.parse_args().only
    limit = parser.parse_args().missed
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wrong = [case for case in planted(folder) if not only or any(word in case.name for word in only)]
        right = [case for case in honest(folder) if not only or any(word in case.name for word in only)]
        told = sum(map(asked, wrong))
        accused = len(right) - sum(map(asked, right))
    print(f"{told} of {len(wrong)} mistakes told with kind and parameters; {accused} of {len(right)} others accused")
    sys.exit(accused > 0 or told < (1 - limit) * len(wrong))


def asked(case: FeedCase) -> bool:
    """Print what is said of a case; return whether it is right."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        verdict = diagnose(
            DiagnoseRequest(model=case.model, target=case.target, feeding=FeedRequest(paths=[str(case.inputs)]),
                            case=Path(folder) / "case", random_too=False, repro=False)
        )  # fmt: skip
    right = is_right(case, verdict)
    seconds = time.perf_counter() - began
    print(f"{'right' if right else 'MISS ':5} {case.name:44} {verdict.verdict:20} {seconds:5.1f} s", flush=True)
    if not right:
        print(f"      {verdict.summary}", flush=True)
    return right


def is_right(case: FeedCase, verdict: Verdict) -> bool:
    """Return whether a mistake is told with kind and parameters, or nobody is accused of one."""
    step = next((each for each in verdict.steps if each.question in QUESTIONS and "transforms" in each.evidence), None)
    found = step.evidence["transforms"] if step else []
    if case.mistake is None:
        return step is None
    by_kind = {each["kind"]: each["parameters"] for each in found}
    return verdict.verdict == "comparison-unsound" and set(by_kind) in case.mistake.kinds and case.mistake.says(by_kind)


if __name__ == "__main__":
    main()

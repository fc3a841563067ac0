"""Known differences of meaning through `triage diagnose`: is the operator named, and what is understood otherwise?

    python bench/meanings.py [--only WORD ...]

Programs, references and files that compute one operator otherwise, or two: the operator and the difference must be in
the answer. Pairs that are alike or differ in another way: nothing may be said of meanings.
"""

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from meanings_cases import MeaningCase, honest, planted
from meanings_engines import EngineCase, engines, sound_engines
from meanings_kinds import built, unbuilt, unrelated
from meanings_left_out import left_out, sound_left_out
from meanings_normalizations import normalizations, sound_normalizations
from meanings_orders import orders, sound_orders

from tensortriage.diagnose.state.verdict import Verdict
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.workflows.diagnosis.diagnose import diagnose
from tensortriage.workflows.requests import DiagnoseRequest

Case = MeaningCase | EngineCase
GROUPS: Mapping[str, Callable[[], Sequence[Case]]] = {
    "planted": planted, "built": built, "unbuilt": unbuilt, "engines": engines,
    "normalizations": normalizations, "sound-normalizations": sound_normalizations,
    "orders": orders, "sound-orders": sound_orders, "left-out": left_out, "sound-left-out": sound_left_out,
    "honest": honest, "unrelated": unrelated, "sound-engines": sound_engines,
}  # fmt: skip
QUESTION = "does either side interpret an operator differently?"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[], metavar="WORD", help="cases whose names have one of the words")
    parser.add_argument("--groups", nargs="*", default=list(GROUPS), choices=GROUPS, help="groups of cases")
    arguments = parser.parse_args()
    failed = False
    for group in arguments.groups:
        only = arguments.only
        cases = [case for case in GROUPS[group]() if not only or any(word in case.name for word in only)]
        right = sum(map(asked, cases))
        told = bool(cases and cases[0].said)
        said = f"{right} of {len(cases)} differences told" if told else f"{len(cases) - right} of {len(cases)} accused"
        print(f"{group}: {said}", flush=True)
        failed |= right < (0.9 if told else 1.0) * len(cases)
    sys.exit(failed)


def asked(case: Case) -> bool:
    """Print what is said of a case; return whether it is right."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        given = {key: Path(v) if key == "target_model" else v for key, v in case.write(folder).items()}
        verdict = diagnose(
            DiagnoseRequest(
                model=folder / "model.onnx", feeding=FeedRequest(paths=[str(folder / "inputs.npz")]),
                case=folder / "case", random_too=False, repro=False, builds=0, **given,
            )
        )  # fmt: skip
    found = said(verdict)
    if case.said and isinstance(case, EngineCase):  # patterns of the error tell some of these
        found = words_of(verdict)
    right = not found if not case.said else all(re.search(word, found) for word in case.said)
    seconds = time.perf_counter() - began
    step = next((each for each in verdict.steps if each.question == QUESTION), None)
    spent = f"{seconds:5.1f} s (of it {step.seconds if step else 0:.1f} s)"
    outcome = f"{verdict.verdict:20} {verdict.confidence:4.0%} {spent}"
    print(f"{'right' if right else 'MISS ':5} {case.name:36} {outcome}", flush=True)
    if not right:
        print(f"      {verdict.summary}\n      {step.answer if step else 'not asked'}", flush=True)
    return right


def said(verdict: Verdict) -> str:
    """Return what is said of a meaning; empty where none is."""
    step = next((each for each in verdict.steps if each.question == QUESTION), None)
    known = step is not None and step.answer.startswith("yes")
    return words_of(verdict) if known else ""


def words_of(verdict: Verdict) -> str:
    """Return the summary of a verdict, and of its culprits the reasons and the patterns of their errors."""
    return " ".join([verdict.summary, *(" ".join([each.reason, *each.anatomy]) for each in verdict.culprits)])


if __name__ == "__main__":
    main()

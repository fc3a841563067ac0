"""The planted-fault suite through `triage diagnose`: verdict and first culprit of every case, and a confusion matrix.

    python bench/confusion.py
    python bench/confusion.py --families encoder mlp --kinds scale nan fusion --seed 3

Prints one line per case (right or MISS, verdict, first culprit, seconds), then how often each verdict was given where
another was right, and the two shares that count: right verdicts, and right first culprits among the cases that have
one. Exits with 1 when either is below --bar.
"""

import argparse
import collections
import sys
import tempfile
import time
from pathlib import Path

from planted_suite import FAMILIES, Planted, makers, planted_cases

from tensortriage.engines.base import Limits
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.workflows.diagnosis.diagnose import diagnose
from tensortriage.workflows.requests import DiagnoseRequest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--kinds", nargs="+", choices=makers(), default=[])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bar", type=float, default=0.95)
    arguments = parser.parse_args()
    confused: collections.Counter[tuple[str, str, bool]] = collections.Counter()
    verdicts = culprits = total = named = 0
    kinds = set()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for case in planted_cases(folder, families=arguments.families, kinds=arguments.kinds, seed=arguments.seed):
            started = time.perf_counter()
            verdict, first, summary = ask(case, folder / "cases" / case.name)
            right, found = verdict in case.verdicts, not case.culprits or first in case.culprits
            kinds.add(case.kind)
            total, verdicts = total + 1, verdicts + right
            named, culprits = named + bool(case.culprits), culprits + (found and bool(case.culprits))
            confused[case.verdicts[0], verdict, right] += 1
            print(f"{'right' if right and found else 'MISS ':5} {case.name:32} {verdict:22} {first:38} "
                  f"{time.perf_counter() - started:5.1f} s", flush=True)  # fmt: skip
            if not (right and found):
                print(f"      planted in {' or '.join(case.culprits) or '-'}, right is {case.verdicts[0]}: {summary}",
                      flush=True)  # fmt: skip
    for (expected, got, right), count in sorted(confused.items()):
        print(f"{expected:22} -> {got:22} {count:4}{'' if right else '  <'}")
    shares = verdicts / max(total, 1), culprits / max(named, 1)
    print(f"{len(kinds)} kinds, {total} cases: right verdict {verdicts} ({shares[0]:.1%}), "
          f"right culprit first {culprits} of {named} ({shares[1]:.1%})")  # fmt: skip
    sys.exit(min(shares) < arguments.bar)


def ask(case: Planted, folder: Path) -> tuple[str, str, str]:
    """Return verdict, first culprit and summary of a diagnosis."""
    limits = Limits() if case.seconds is None else Limits(build_seconds=case.seconds, run_seconds=case.seconds)
    verdict = diagnose(
        DiagnoseRequest(
            model=case.model,
            target=case.target,
            reference=case.reference,
            target_model=case.target_model,
            feeding=FeedRequest(paths=(str(case.feeds),)),
            case=folder,
            limits=limits,
            builds=case.builds,
            repro=False,
        )
    )
    return verdict.verdict, verdict.culprits[0].node if verdict.culprits else "-", verdict.summary


if __name__ == "__main__":
    main()

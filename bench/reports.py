"""What does the product make of public bug reports, rebuilt small (`reports/`)?

    python bench/reports.py [NAME|MODULE ...] [--keep FOLDER]

Makes each case in a folder of its own, asks `triage` as the report's author would have, and prints the verdict, the
exit code, the confidence, whether the kind is right and whether the cause and the culprit are in the words of the
answer; then the totals. Exits with 1 where fewer than 90 % of the kinds are right, or 80 % of the causes are named, or
a wrong kind is stated at more than 60 % confidence. Cases without what they need (PyTorch) are left out, and said.
Of modules whose name ends in ``_held`` no answer is printed: they are held out.
"""

import argparse
import dataclasses
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from reports import Report, reports

KINDS, CAUSES, SURE = 0.9, 0.8, 0.6


@dataclasses.dataclass(frozen=True)
class Answer:
    """What was said of a case."""

    verdict: str
    code: int
    confidence: float
    words: str

    def kind(self, case: Report) -> bool:
        """Return whether the verdict is one of the right ones."""
        return self.verdict in case.right

    def cause(self, case: Report) -> bool:
        """Return whether the cause is named, and the culprit where the thread names one."""
        wanted = (*case.cause, *([case.culprit] if case.culprit else []))
        return all(re.search(pattern, self.words, re.IGNORECASE) for pattern in wanted)


def made(case: Report, folder: Path) -> None:
    """Write a case's files, in a process of its own."""
    code = f"from reports import reports; reports()[{case.name!r}].make()"
    paths = [str(Path(__file__).parent), str(folder)]
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if run.returncode:
        raise SystemExit(f"{case.name} cannot be made:\n{run.stderr[-2000:]}")


def asked(case: Report, folder: Path) -> Answer:
    """Return the answer of ``triage``; its words are the panel and what stands below, not the steps above."""
    command = [sys.executable, "-m", "tensortriage", *case.command.split()]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    saved = folder / "triage-case" / "verdict.json"
    found = json.loads(saved.read_text()) if saved.is_file() else {}
    text = run.stdout[run.stdout.find("╭") :] if "╭" in run.stdout else run.stdout + run.stderr
    words = re.sub(r"[\s│╭╮╰╯─]+", " ", text)
    first = found["culprits"][0]["node"] if found.get("culprits") else ""
    (folder / "answer.txt").write_text(run.stdout + run.stderr)
    return Answer(
        found.get("verdict", f"exit {run.returncode}"), run.returncode, found.get("confidence", 1.0), f"{first} {words}"
    )


def parts(every: dict[str, Report], module: str) -> list[str]:
    """Return the names of a module's cases."""
    return [name for name, case in every.items() if case.make.__module__ == f"reports.{module}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--keep", type=Path, help="where the cases are made and stay")
    arguments = parser.parse_args()
    every = reports()
    asked_for = arguments.names or [name for name, case in every.items() if not case.first]
    names = [n for a in asked_for for n in ([a] if a in every else parts(every, a))]
    kinds = causes = sure = asked_of = 0
    with tempfile.TemporaryDirectory() as temporary:
        for case in (every[name] for name in names):
            if case.needs and importlib.util.find_spec(case.needs) is None:
                print(f"left out {case.name:36} needs {case.needs}")
                continue
            folder = (arguments.keep or Path(temporary)).absolute() / case.name
            folder.mkdir(parents=True, exist_ok=True)
            started = time.perf_counter()
            made(case, folder)
            answer = asked(case, folder)
            kind = answer.kind(case)
            cause = kind and answer.cause(case)  # words of a wrong verdict name a cause by chance
            asked_of, kinds, causes = asked_of + 1, kinds + kind, causes + cause
            sure += not kind and answer.confidence > SURE
            print(f"{'right' if kind else 'WRONG'} {'cause' if cause else '-    '} {case.name:36} {case.thread:42} "
                  f"{answer.verdict:20} {answer.code} {answer.confidence:4.0%} "
                  f"{time.perf_counter() - started:5.1f} s", flush=True)  # fmt: skip
            if not (kind and cause) and not case.make.__module__.endswith("_held"):  # those answers nobody reads
                wanted = " and ".join((*case.cause, case.culprit))
                print(f"      right is {' or '.join(case.right)}, {wanted}: {answer.words[:400]}", flush=True)
    shares = kinds / max(asked_of, 1), causes / max(asked_of, 1)
    print(f"{asked_of} reports: right kind {kinds} ({shares[0]:.0%}), cause in words {causes} ({shares[1]:.0%}), "
          f"wrong and sure {sure}")  # fmt: skip
    sys.exit(kinds < KINDS * asked_of or causes < CAUSES * asked_of or sure > 0)


if __name__ == "__main__":
    main()

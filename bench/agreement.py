"""Do `run` and `diagnose` agree on what is within? Both are asked about the same model, target and feeds, case by case.

    python bench/agreement.py --source random --cases 200
    python bench/agreement.py --cases 40 --limit-seconds 600
    python bench/agreement.py --source confusion --only '*/scale' --seed 3
    python bench/agreement.py --report

They agree when `run` ends in 0 exactly where `diagnose` does (`match`, `rounding`, `input-sensitive`). Cases are those
of `truth.py`, `truth.py --files`, `confusion.py`, `healthy.py`, random ones (`agreement_cases`), and small networks of
every type (`agreement_small`), whose exit codes must be equal, and right. Prints a line per
case where they part: the rows of `run` that decide, the verdict of `diagnose`, and which verdicts are right. Faults of
chance (another build, another run, a crash) are counted apart. One JSON line per case goes to
bench/models/truth/results/agreement-COMMIT.jsonl (apart by processor), and cases that are there are not asked again.
"""

import argparse
import collections
import fnmatch
import itertools
import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from agreement_cases import FOLDER, SOURCES, Question
from filelock import FileLock
from planted_suite import FAILING, NUMERIC
from truth import LACKING, commit
from truth_cases import PER_BUILD
from truth_models import HOME

from tensortriage.api import CompareRequest, DiagnoseRequest, TriageError, compare, diagnose
from tensortriage.runs.engine_specs import usable
from tensortriage.workflows.comparison.saved_results import load_saved

CHANCE = ("noise-per-run-0.02", "every-second-build", "one-run-of-20", "intermittent", *FAILING,
          *(kind for kind, verdicts in NUMERIC.items() if verdicts == ("nondeterministic-run",)))  # fmt: skip
"""Kinds of faults that need not show in every build or run, or leave no answer; verdicts that say so are below."""
BY_CHANCE = (*PER_BUILD, "build-failed", "engine-crash", "engine-hang")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", nargs="+", choices=SOURCES, default=list(SOURCES))
    parser.add_argument("--cases", type=int, default=0, help="so many of each source (default: all; random: 200)")
    parser.add_argument("--only", nargs="+", default=["*"], help="cases whose names match")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit-seconds", type=float, default=float("inf"), help="ask no other case after so long")
    parser.add_argument("--report", action="store_true", help="ask nothing: only count what was answered before")
    arguments = parser.parse_args()
    file = HOME / "results" / f"agreement-{commit()}{LACKING}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    known = {found["name"]: found for found in map(json.loads, file.read_text().splitlines())} if file.is_file() else {}
    chosen = [
        [name for name in SOURCES[source][0](arguments.seed) if any(fnmatch.fnmatch(name, p) for p in arguments.only)][
            : arguments.cases or (200 if source == "random" else None)
        ]
        for source in arguments.source
    ]
    in_turn = [name for names in itertools.zip_longest(*chosen) for name in names if name]
    asked = [] if arguments.report else [name for name in in_turn if name not in known]
    for line in answers(asked, arguments.limit_seconds):
        known[line["name"]] = line
        with file.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(line) + "\n")
        if parted(line):
            print(told(line), flush=True)
    lines = [known[name] for name in in_turn if name in known]
    if arguments.report:
        print(*(told(line) for line in lines if parted(line)), sep="\n")
    print(report(lines))
    sys.exit(any(parted(line) and not line["chance"] for line in lines))


def answers(names: Sequence[str], seconds: float) -> Iterator[dict[str, Any]]:
    """Ask in another process, which an engine may end: the others are asked all the same."""
    began, context = time.monotonic(), multiprocessing.get_context("spawn")
    left = collections.deque(names)
    while left and time.monotonic() - began < seconds:
        with ProcessPoolExecutor(1, mp_context=context) as pool:  # twenty each, for what engines leave in memory
            for _ in range(min(20, len(left))):
                if time.monotonic() - began >= seconds:
                    break
                name = left.popleft()
                try:
                    yield pool.submit(answer, name).result()
                except BrokenProcessPool:
                    yield {"name": name, "skipped": "the process died"}
                    break


def answer(name: str) -> dict[str, object]:
    """Return the line of one case."""
    started, source = time.perf_counter(), name.split("/")[0]
    if source == "files":
        return file_line(name)
    try:
        FOLDER.mkdir(parents=True, exist_ok=True)
        with FileLock(FOLDER / "made.lock"):
            question = SOURCES[source][1](name)
    except Exception as error:  # a model that cannot be made must not end the others
        return {"name": name, "skipped": f"{type(error).__name__}: {error}"[:300]}
    if question is None:
        return {"name": name, "skipped": "no difference, or no place for the fault"}
    ran, rows = run(question)
    between = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="agreement-") as folder:
        done, verdict, summary = diagnosed(question, Path(folder))
    if verdict in ("error[precision-unsupported]", "error[engine-missing]"):
        return {"name": name, "skipped": verdict}
    return {
        "name": name, "run": ran, "rows": rows, "diagnose": done, "verdict": verdict, "summary": summary,
        "right": list(question.right), "chance": verdict in BY_CHANCE or bool({*name.split("/")} & {*CHANCE}),
        "target": question.target, "size": question.size,
        "run_seconds": between - started, "seconds": time.perf_counter() - started,
    }  # fmt: skip


def run(question: Question) -> tuple[int, list[str]]:
    """Return the exit code of `run`, and what decides: rows outside, or the one nearest to its limit."""
    try:
        words = (question.reference, *([] if question.saved else [question.target]))
        specs = [usable(text, limits=question.limits) for text in words]
        found = compare(CompareRequest(
            model=question.model, reference=specs[0], targets=specs[1:], target_model=question.target_model,
            saved=list(load_saved(question.saved)) if question.saved else (),
            feeding=question.feeding, limits=question.limits,
        ))  # fmt: skip
    except TriageError as error:
        return error.exit_code, [f"error[{error.slug}] {error.message}"]
    rows = [row for item in found.comparisons for row in item.comparison.rows]
    rows.sort(key=lambda row: (row.judgement.within, -row.judgement.ratio))
    said = [
        f"{row.value} {row.metrics.relative_rms_error if row.figure is None else row.figure:.3g}, "
        f"{row.judgement.ratio:.3g}x of {row.judgement.limit} ({row.judgement.basis.value})"
        for row in rows if not row.judgement.within or row is rows[0]
    ]  # fmt: skip
    said += [f"{name}: {outcome.message}" for name, outcome in found.outcomes.items() if not outcome.ok]
    said += [f"reference is not the model at {one.value}: {one.error:.3g}" for one in found.disagreements]
    return found.exit_code, [*said, *([found.unevaluated] if found.unevaluated else [])]


def diagnosed(question: Question, folder: Path) -> tuple[int, str, str]:
    """Return the exit code of `diagnose`, its verdict and its sentence."""
    try:
        found = diagnose(DiagnoseRequest(
            model=question.model, target=question.target, reference=question.reference, case=folder,
            target_model=question.target_model, feeding=question.feeding, limits=question.limits,
            builds=question.builds, repro=False,
        ))  # fmt: skip
    except TriageError as error:
        return error.exit_code, f"error[{error.slug}]", error.message
    return found.exit_code, found.verdict, found.summary


def file_line(name: str) -> dict[str, object]:
    """Return the line of a rewritten file, whose golden values `run` is given."""
    import truth_files  # torch and converters, which the other sources do without

    line = truth_files.answer(name)
    names = {"run": "run_exit", "diagnose": "diagnose_exit", "right": "verdicts"}
    return line if "skipped" in line else {
        **line, **{ours: line[theirs] for ours, theirs in names.items()}, "rows": [line["run_said"]], "chance": False,
    }  # fmt: skip


def parted(line: Mapping[str, Any]) -> bool:
    """Say whether one command passes what the other does not, or either gives another exit code than known right."""
    if "skipped" in line:
        return False
    codes = line["run"], line["diagnose"]
    if isinstance(line["right"][0], int):
        return codes[0] != codes[1] or codes[0] not in line["right"]
    return (codes[0] == 0) != (codes[1] == 0)


def told(line: Mapping[str, Any]) -> str:
    """Return both sides of a case."""
    apart = " (chance)" if line["chance"] else ""
    right = "/".join(map(str, line["right"])) + (f", size {line['size']:.2g}" if line.get("size") else "")
    said = f"run {line['run']}: {'; '.join(line['rows'][:3])}"
    return (f"PART{apart} {line['name']} | {said} | diagnose {line['diagnose']} {line['verdict']}: {line['summary']} | "
            f"right: {right}")  # fmt: skip


def report(lines: Sequence[Mapping[str, Any]]) -> str:
    """Return the counts by source."""
    rows = []
    for source in SOURCES:
        mine = [line for line in lines if str(line["name"]).startswith(f"{source}/")]
        asked = [line for line in mine if "skipped" not in line]
        sure = [line for line in asked if not line["chance"]]
        if not mine:
            continue
        rows.append(f"{source:10} {len(asked):4} asked, {sum(map(parted, sure))} of {len(sure)} part, of chance "
                    f"{sum(map(parted, asked)) - sum(map(parted, sure))} of {len(asked) - len(sure)}; "
                    f"{len(mine) - len(asked)} left out")  # fmt: skip
    ways = collections.Counter((line["run"], line["diagnose"]) for line in lines if "skipped" not in line)
    return "\n".join([*rows, *(f"run {a}, diagnose {b}: {count}" for (a, b), count in sorted(ways.items()))])


if __name__ == "__main__":
    main()

"""Can a verdict be believed? `diagnose` on healthy and faulty engines whose truth is known, and on wrong golden values.

    python bench/truth.py --cases 60 --jobs 2
    python bench/truth.py --only 'faulty/*/fp16-acc16/scale-*'
    python bench/truth.py --golden --only 'golden/*'
    python bench/truth.py --cases 60 --golden --write
    python bench/truth.py --files --only 'files/mistake/bert4/*'
    python bench/truth.py --sensitivity --cases 6
    python tests/without_vnni.py --required python bench/truth.py --files

Healthy: models of bench/models/truth on ONNX Runtime at every level, OpenVINO, emulated formats and simulated
accelerators that take one freedom each. Faulty: faults of many sizes planted in such accelerators. One JSON line per
case goes to bench/models/truth/results/COMMIT.jsonl, and cases that are there are not asked again. Prints false alarms,
misses by size and kind of fault, right verdicts, right first culprits, stated confidence against observed correctness,
and every wrong case with the command that reproduces it. `--write` replaces the section "Truth" of bench/RESULTS.md.
`--files` asks about rewritten files instead (`truth_files`), and `--write` then replaces the section "Rewritten files".
`--sensitivity` says what moving each threshold, or those named, by half and double does to the cases that are asked.
"""

import argparse
import dataclasses
import fnmatch
import itertools
import json
import multiprocessing
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import truth_golden
from truth_cases import Case, case_names, made
from truth_models import HOME
from truth_report import Answer, GoldenAnswer, report

from tensortriage.api import DiagnoseRequest, FeedRequest, Limits, TriageError, diagnose
from tensortriage.engines.cpu_features import sums_in_int16

Line = dict[str, object]
Ask = Callable[[str], Line]
RESULTS = Path(__file__).parent / "RESULTS.md"
HEADING = "## Truth"
LIMITS = Limits(build_seconds=120.0, run_seconds=120.0)
LACKING = "-without-vnni" * sums_in_int16()
"""What answers of such a processor are kept apart by; `tests/without_vnni.py` makes any one."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=0, help="so many of each group (default: all)")
    parser.add_argument("--only", default="*", help="cases whose names match")
    parser.add_argument("--golden", action="store_true", help="golden values too; alone with --only 'golden/*'")
    parser.add_argument("--files", action="store_true", help="rewritten files, and nothing else")
    parser.add_argument("--sensitivity", nargs="*", metavar="THRESHOLD", help="what moving these does (default: all)")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--report", action="store_true", help="ask nothing: only count what was answered before")
    parser.add_argument("--write", action="store_true", help="replace the section of bench/RESULTS.md")
    arguments = parser.parse_args()
    file = HOME / "results" / f"{commit()}{LACKING}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    if arguments.files:
        of_files(arguments, file)
        return
    groups = [*case_names(arguments.seed), truth_golden.names(arguments.seed) if arguments.golden else []]
    healthy, faulty, golden = (
        [name for name in group if fnmatch.fnmatch(name, arguments.only)][: arguments.cases or None] for group in groups
    )
    asked = [name for pair in itertools.zip_longest(healthy, faulty) for name in pair if name]
    answered = answers(answer, file, [*asked, *golden], arguments)
    if arguments.sensitivity is not None:
        sensitivity(arguments, answered, answer, file)
        return
    kept = [answered[name] for name in asked if name in answered and not answered[name].get("skipped")]
    values = [GoldenAnswer(**answered[name]) for name in golden if name in answered]
    text = report([Answer(**line) for line in kept], values, commit())
    print(text)
    if arguments.write:
        write(text)


def of_files(arguments: argparse.Namespace, file: Path) -> None:
    """Ask about rewritten files, and print what was said."""
    import truth_files
    from truth_files_cases import names

    chosen = [name for name in names(arguments.seed) if fnmatch.fnmatch(name, arguments.only)][
        : arguments.cases or None
    ]
    answered = answers(truth_files.answer, file, chosen, arguments)
    if arguments.sensitivity is not None:
        sensitivity(arguments, answered, truth_files.answer, file)
        return
    lines = list(answered.values())
    left_out = {line["name"]: line["skipped"] for line in lines if "skipped" in line}
    found = [truth_files.FileAnswer(**line) for line in lines if "skipped" not in line]
    text = truth_files.report(found, left_out)
    print(text)
    if arguments.write:
        write(f"`python bench/truth.py --files --write` on {commit()}.\n\n{text}", "## Rewritten files")


def sensitivity(arguments: argparse.Namespace, answered: Mapping[str, Line], ask: Ask, file: Path) -> None:
    """Print what moving thresholds does to cases that were answered with all of them as they are."""
    import truth_sensitivity

    known = {name: line for name, line in answered.items() if not line.get("skipped")}
    wanted = truth_sensitivity.names_of(arguments.sensitivity)

    def asked(moved: Ask, of_moved: Path, names: Sequence[str]) -> Mapping[str, Line]:
        return answers(moved, of_moved, names, arguments)

    rows = list(truth_sensitivity.table(wanted, known, asked, ask, file.with_suffix("")))
    print("\n".join(rows))


def answers(ask: Ask, file: Path, names: Sequence[str], arguments: argparse.Namespace) -> dict[str, Line]:
    """Return the lines of cases in their order: those of a file, and those that are asked now."""
    answered = {str(line["name"]): line for line in _lines(file)}
    open_cases = [name for name in names if name not in answered and not arguments.report]
    answered.update(asked_of(ask, open_cases, arguments.jobs, file))
    return {name: answered[name] for name in names if name in answered}


def asked_of(ask: Ask, names: Sequence[str], jobs: int, file: Path) -> dict[str, Line]:
    """Ask about cases in processes, and keep and show each line at once."""
    found = {}
    with multiprocessing.get_context("spawn").Pool(jobs, maxtasksperchild=20) as pool:
        for line in pool.imap_unordered(ask, names):
            found[str(line["name"])] = line
            with file.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(line) + "\n")
            print(_told(line), flush=True)
    return found


def answer(name: str) -> dict[str, object]:
    """Return the line of one case."""
    started = time.perf_counter()
    if name.startswith("golden/"):
        return {**dataclasses.asdict(truth_golden.answer(name)), "seconds": time.perf_counter() - started}
    try:
        case = made(name)
    except Exception as error:  # a model that cannot be made must not end the others
        return {"name": name, "skipped": f"{type(error).__name__}: {error}"}
    if case is None:
        return {"name": name, "skipped": "no difference, or no place for the fault"}
    with tempfile.TemporaryDirectory(prefix="truth-") as folder:
        found = diagnosed(case, Path(folder))
    if found.verdict == "error[precision-unsupported]":
        return {"name": name, "skipped": "this processor does not compute in the format"}
    if case.healthy and found.verdict in ("build-failed", "engine-crash", "comparison-unsound") and refuses(case):
        return {"name": name, "skipped": f"the engine itself ends in {found.verdict}"}
    return dataclasses.asdict(found)


def refuses(case: Case) -> bool:
    """Say whether ONNX Runtime, the reference, or OpenVINO does not compile the model by itself: that is no alarm."""
    scripts = ["import onnxruntime, sys; onnxruntime.InferenceSession(sys.argv[1], providers=['CPUExecutionProvider'])"]
    if case.target.startswith("openvino"):
        scripts.append("import openvino, sys; c = openvino.Core(); c.compile_model(c.read_model(sys.argv[1]), 'CPU')")
    commands = ([sys.executable, "-c", words, str(case.subject.model)] for words in scripts)
    return any(subprocess.run(command, capture_output=True, check=False).returncode for command in commands)


def diagnosed(case: Case, folder: Path) -> Answer:
    """Ask for the verdict of a case."""
    started = time.perf_counter()
    feeding = FeedRequest(paths=(str(case.subject.feed),))
    request = DiagnoseRequest(
        model=case.subject.model, target=case.target, feeding=feeding, case=folder, limits=LIMITS, repro=False
    )
    try:
        found = diagnose(request)
        verdict, confidence, summary = found.verdict, found.confidence, found.summary
        culprits = tuple(culprit.node for culprit in found.culprits)
    except TriageError as error:
        verdict, confidence, culprits, summary = f"error[{error.slug}]", 1.0, (), error.message
    except Exception as error:  # a crash of the tool is a wrong answer, not the end
        verdict, confidence, culprits, summary = f"crash[{type(error).__name__}]", 1.0, (), str(error)[:300]
    command = ["triage", "diagnose", _short(case.subject.model), "--inputs", _short(case.subject.feed), "--target",
               case.target.replace(str(HOME), _short(HOME))]  # fmt: skip
    return Answer(
        name=case.name, kind=case.kind, size=case.size, verdicts=case.verdicts, culprits=case.culprits,
        verdict=verdict, confidence=confidence, named=culprits[:3], summary=summary, command=shlex.join(command),
        seconds=time.perf_counter() - started,
    )  # fmt: skip


def _short(path: Path) -> str:
    return str(path.relative_to(RESULTS.parent.parent))


def _told(line: dict[str, object]) -> str:
    if line.get("skipped"):
        return f"      {line['name']:60} {line['skipped']}"
    if str(line["name"]).startswith("files/"):
        import truth_files

        return truth_files.FileAnswer(**line).told()  # type: ignore[arg-type] # as it was written
    if str(line["name"]).startswith("golden/"):
        return GoldenAnswer(**line).told()  # type: ignore[arg-type] # as it was written
    return Answer(**line).told()  # type: ignore[arg-type] # as above


def _lines(file: Path) -> Iterator[dict[str, object]]:
    if file.is_file():
        for text in file.read_text(encoding="utf-8").splitlines():
            yield json.loads(text)


def commit() -> str:
    """Return the commit that is judged."""
    words: Sequence[str] = ["git", "-C", str(RESULTS.parent), "log", "-1", "--format=%h", "--", "../src", "../worker"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip() or "unknown"


def write(text: str, heading: str = HEADING) -> None:
    """Replace a section of the results."""
    before, _, rest = RESULTS.read_text(encoding="utf-8").partition(f"{heading}\n")
    _, mark, after = rest.partition("\n## ")
    RESULTS.write_text(f"{before.rstrip()}\n\n{heading}\n\n{text.strip()}\n{mark}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()

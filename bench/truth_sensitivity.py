"""What each threshold does to verdicts: misses and false alarms with it halved, as it is, and doubled.

    python bench/truth.py --sensitivity --cases 6
    python bench/truth.py --sensitivity MATCH_FACTOR SUSPECT_RATIO --only '*/mlp/*'
    python bench/truth.py --sensitivity WEIGHTS_ALIKE --files --cases 20

Whoever asks for a threshold imported it by name, so that it has to be moved before anything imports it: by a
`sitecustomize` at the head of `PYTHONPATH`, which every Python process that answers runs first, the `triage` that it
starts among them. Answers go to bench/models/truth/results/COMMIT/THRESHOLD=NUMBER.jsonl, one line per case, and those
that are there are not asked again. Cases that say nothing with the threshold as it is are left out.
"""

import collections
import contextlib
import functools
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from truth_report import Answer, GoldenAnswer

from tensortriage.compare.judgement import thresholds

Line = Mapping[str, object]
FACTORS = (0.5, 2.0)
HEAD = """| threshold | value | halved to | | as it is | doubled to | |
|---|---|---|---|---|---|---|"""
FIRST = """from contextlib import suppress
with suppress(ImportError):  # the Python of an engine knows no thresholds
    from tensortriage.compare.judgement import thresholds
    thresholds.{name} = {value!r}
"""


def names_of(wanted: Sequence[str]) -> list[str]:
    """Return the thresholds that are meant: all of the table where none is named.

    Raises:
        SystemExit: For one that is not in the table.
    """
    table = [name for name in vars(thresholds) if name.isupper()]
    if unknown := sorted(set(wanted) - set(table)):
        raise SystemExit(f"{', '.join(unknown)}: no threshold; there are {', '.join(table)}")
    return list(wanted) or table


def moved_value(name: str, factor: float) -> float:
    """Return a threshold times a factor; of a count a whole number, 1 at least."""
    value: float = getattr(thresholds, name)
    return max(1, round(value * factor)) if isinstance(value, int) else value * factor


@contextlib.contextmanager
def moved(name: str, value: float) -> Iterator[None]:
    """Let every Python process that starts meanwhile have another value of a threshold."""
    before = os.environ.get("PYTHONPATH")
    with tempfile.TemporaryDirectory(prefix="threshold-") as folder:
        Path(folder, "sitecustomize.py").write_text(FIRST.format(name=name, value=value), encoding="utf-8")
        os.environ["PYTHONPATH"] = os.pathsep.join(part for part in (folder, before) if part)
        try:
            yield
        finally:
            os.environ.pop("PYTHONPATH") if before is None else os.environ.update(PYTHONPATH=before)


def answer_with(ask: Callable[[str], dict[str, object]], name: str, value: float, case: str) -> dict[str, object]:
    """Ask about a case in a process whose threshold was moved.

    Raises:
        RuntimeError: If a module of this process holds another value: the answer would be that of the old one.
    """
    found = ask(case)
    modules = [module for key, module in list(sys.modules.items()) if key.startswith("tensortriage.")]
    if left := [module.__name__ for module in modules if vars(module).get(name, value) != value]:
        raise RuntimeError(f"{name} was not moved in {', '.join(left)}")
    return found


def outcome(line: Line) -> str:
    """Return ``miss``, ``alarm``, ``other`` (a fault told as another, or with another culprit) or ``right``."""
    name = str(line["name"])
    if name.startswith("files/"):
        from truth_files import FileAnswer  # makes its networks with PyTorch

        file = FileAnswer(**line)  # type: ignore[arg-type] # as it was written
        sound, accused, right = file.group == "sound", any(file.accused.values()), file.right
    elif name.startswith("golden/"):
        golden = GoldenAnswer(**line)  # type: ignore[arg-type] # as above
        sound, accused, right = not golden.wrong, golden.failed is not False, golden.right
    else:
        engine = Answer(**line)  # type: ignore[arg-type] # as above
        sound, accused, right = engine.healthy, not engine.missed, engine.right and engine.blamed
    if right:
        return "right"
    return "alarm" if sound else "other" if accused else "miss"


def cell(lines: Iterable[Line]) -> str:
    """Return misses, false alarms and other wrong answers among some, and among how many."""
    found = collections.Counter(outcome(line) for line in lines)
    return f"{found['miss']} / {found['alarm']} / {found['other']} of {found.total()}" if found else "-"


def table(
    wanted: Sequence[str],
    known: Mapping[str, Line],
    asked: Callable[[Callable[[str], dict[str, object]], Path, Sequence[str]], Mapping[str, Line]],
    ask: Callable[[str], dict[str, object]],
    folder: Path,
) -> Iterator[str]:
    """Ask about cases once more for each moved threshold, and yield the rows of a table.

    Args:
        wanted: Names of thresholds.
        known: What is said of the cases with all thresholds as they are.
        asked: Answers cases by a function, beginning with those that a file has.
        ask: The function for one case.
        folder: Where the files of answers are.
    """
    yield f"Cells: misses / false alarms / other wrong verdicts or culprits, of {len(known)} cases.\n\n{HEAD}"
    folder.mkdir(parents=True, exist_ok=True)
    for name in wanted:
        cells = []
        for factor in FACTORS:
            value = moved_value(name, factor)
            with moved(name, value):
                lines = asked(
                    functools.partial(answer_with, ask, name, value), folder / f"{name}={value:g}.jsonl", list(known)
                )
            cells += [f"{value:g}", cell(line for line in lines.values() if "skipped" not in line)]
        row = [name, f"{getattr(thresholds, name):g}", *cells[:2], cell(known.values()), *cells[2:]]
        yield f"| {' | '.join(row)} |"

"""Rewritten files, sound, mistaken and useless: what `run` and `diagnose` make of each, asked as people ask.

Both commands get the same real feeds: `run` the rewritten file and golden values of the original, `diagnose` both
files. A sound file is accused when a command ends in another exit than 0; a mistake is found when `run` ends in 1, and
`diagnose` in a right verdict whose first culprit has a right name; a useless file has to end in 1, with a remedy.
"""

import collections
import dataclasses
import json
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from filelock import FileLock
from networks.trained import FILES
from truth_files_cases import FileCase, LeftOut, made
from truth_models import HOME

ROOT = HOME.parents[2]
GROUPS = ("sound", "mistake", "useless", "cut off")


@dataclasses.dataclass(frozen=True)
class FileAnswer:
    """What both commands said of a file, and what is right.

    Attributes:
        name: As `truth_files_cases.FileCase` has it; so are `loss`, `verdicts` and `culprits`.
        run_exit: Of `run`.
        run_said: Its last words.
        diagnose_exit: Of `diagnose`.
        verdict: Its verdict, or its error.
        named: Node and value of the culprits, the first one first, and its reason.
        remedy: Whether the verdict has one, or a command that looks for one.
        summary: Its sentence.
        commands: What reproduces both.
        run_seconds: What `run` took.
        diagnose_seconds: What `diagnose` took.
    """

    name: str
    loss: float
    verdicts: Sequence[str]
    culprits: Sequence[str]
    run_exit: int
    run_said: str
    diagnose_exit: int
    verdict: str
    named: Sequence[str]
    remedy: bool
    summary: str
    commands: Sequence[str]
    run_seconds: float
    diagnose_seconds: float

    @property
    def group(self) -> str:
        """``sound``, ``mistake``, ``useless``, or ``cut off``: sound, and its sums do not fit in int16 here."""
        group = self.name.split("/")[1]
        return "cut off" if group == "sound" and "quantization" in self.verdicts else group

    @property
    def kind(self) -> bool:
        """Whether the verdict is a right one."""
        return self.verdict in self.verdicts

    @property
    def blamed(self) -> bool:
        """Whether the first culprit is a right one; True where there is none to name."""
        return not self.culprits or any(_tells(self.culprits, words) for words in self.named[:1])

    @property
    def accused(self) -> Mapping[str, bool]:
        """Which command says that something is wrong, or cannot judge."""
        return {"run": self.run_exit != 0, "diagnose": self.diagnose_exit != 0}

    @property
    def right(self) -> bool:
        """Whether everything is as it must be."""
        wanted = {1} if "match" not in self.verdicts else {0, 1} if self.group == "cut off" else {0}
        exits = {self.run_exit, self.diagnose_exit} <= wanted
        return exits and self.kind and self.blamed and (self.remedy or self.group != "useless")

    def told(self) -> str:
        """Return one line."""
        said = f"run {self.run_exit} {self.verdict} {self.diagnose_exit}"
        if self.culprits and self.kind:
            said += "" if self.blamed else f", not {self.named[0].split(' | ')[0] if self.named else 'named'}"
        seconds = f"{self.run_seconds:.1f} + {self.diagnose_seconds:.1f} s"
        return f"{'right' if self.right else 'WRONG'} {self.name:60} {self.loss:8.2g}  {said}  {seconds}"


def _tells(names: Sequence[str], words: str) -> bool:
    """Say whether a culprit, its node, value, and reason, has one of some names."""
    node, value, reason = words.split(" | ", 2)
    return node in names or value in names or any(f"'{name}'" in reason for name in names)


def answer(name: str) -> dict[str, object]:
    """Return the line of a case, or why it is left out."""
    FILES.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(FILES / f"{name.split('/')[2]}.lock"):  # networks and files are made once
            case = made(name)
            golden = _golden(case.folder)
    except LeftOut as reason:
        return {"name": name, "skipped": str(reason)}
    except Exception as error:  # a file that cannot be made must not end the others
        return {"name": name, "skipped": f"{type(error).__name__}: {error}"[:300]}
    return dataclasses.asdict(_asked(case, golden))


def _asked(case: FileCase, golden: Path) -> FileAnswer:
    feed = _short(case.folder / "real.npz")
    model, file = _short(case.folder / "model.onnx"), _short(case.file)
    run = ["run", file, "--inputs", feed, "--target", "onnxruntime", "--load-outputs", _short(golden)]
    words = ["diagnose", model, "--target-model", file, "--target", "onnxruntime", "--inputs", feed]
    started = time.perf_counter()
    ran = _triage(*run)
    between = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="truth-") as folder:
        done = _triage(*words, "--case", folder, "--json", "--no-repro")
    found = _verdict(done)
    culprits = found.get("culprits", [])
    named = [f"{one['node']} | {one['value']} | {one['reason']}" for one in culprits[:3]]
    cures = ("debug precision", "convert")
    return FileAnswer(
        name=case.name,
        loss=case.loss,
        verdicts=case.verdicts,
        culprits=case.culprits,
        run_exit=ran.returncode,
        run_said=_last(ran),
        diagnose_exit=done.returncode,
        verdict=found["verdict"],
        named=named,
        remedy=bool(found.get("remedy")) or any(cure in line for line in found.get("next", []) for cure in cures),
        summary=found["summary"],
        commands=[shlex.join(["triage", *line]) for line in (run, words)],
        run_seconds=between - started,
        diagnose_seconds=time.perf_counter() - between,
    )


def _verdict(done: "subprocess.CompletedProcess[str]") -> dict:  # type: ignore[type-arg] # as JSON has it
    try:
        return json.loads(done.stdout)["verdict"]
    except (json.JSONDecodeError, KeyError, TypeError):
        return {"verdict": f"exit {done.returncode}", "summary": _last(done)}


def _last(done: "subprocess.CompletedProcess[str]") -> str:
    return " ".join((done.stdout if done.returncode in (0, 1, 4) else done.stderr).split())[-240:]


def _golden(folder: Path) -> Path:
    """Return the original's outputs of all feeds, as the tool saves them."""
    path = folder / "golden.npz"
    if not path.is_file():
        feed, model = _short(folder / "real.npz"), _short(folder / "model.onnx")
        done = _triage("run", model, "--onnxrt", "--inputs", feed, "--save-outputs", _short(path))
        if not path.is_file():
            raise RuntimeError(done.stderr)
    return path


def _triage(*words: str) -> "subprocess.CompletedProcess[str]":
    triage = [str(Path(sys.executable).parent / "triage"), *words]
    return subprocess.run(triage, capture_output=True, text=True, cwd=ROOT, check=False)


def _short(path: Path) -> str:
    return str(path.relative_to(ROOT))


def report(answers: Sequence[FileAnswer], left_out: Mapping[str, str]) -> str:
    """Return the counts and every wrong case, as Markdown."""
    groups = {group: [found for found in answers if found.group == group] for group in GROUPS}
    sound, mistakes, useless, cut = groups.values()
    rows = [
        ("sound: accused by `run`", _share(sound, lambda a: a.accused["run"])),
        ("sound: accused by `diagnose`", _share(sound, lambda a: a.accused["diagnose"])),
        ("mistakes: found by `run` (exit 1)", _share(mistakes, lambda a: a.run_exit == 1)),
        ("mistakes: right kind of verdict by `diagnose`", _share(mistakes, lambda a: a.kind)),
        ("mistakes: right kind and first culprit", _share(mistakes, lambda a: a.kind and a.blamed)),
        ("mistakes: called `match` or `rounding`", _share(mistakes, lambda a: a.verdict in ("match", "rounding"))),
        ("useless: `run` ends in 1", _share(useless, lambda a: a.run_exit == 1)),
        ("useless: `diagnose` ends in 1", _share(useless, lambda a: a.diagnose_exit == 1)),
        ("useless: with a remedy", _share(useless, lambda a: a.remedy)),
        ("sound, sums cut off here: both end in 1", _share(cut, lambda a: a.run_exit == a.diagnose_exit == 1)),
        ("`run` and `diagnose` disagree", _share(answers, lambda a: len(set(a.accused.values())) > 1)),
        ("all: everything as it must be", _share(answers, lambda a: a.right)),
        ("median and longest seconds of `run`", _seconds([a.run_seconds for a in answers])),
        ("median and longest seconds of `diagnose`", _seconds([a.diagnose_seconds for a in answers])),
    ]  # fmt: skip
    lines = ["| rewritten files | figure |", "|---|---|", *(f"| {what} | {figure} |" for what, figure in rows), ""]
    lines += ["| group, tool or mistake | as it must |", "|---|---|", *_by_kind(answers), ""]
    counted = collections.Counter(name.split("/")[1] for name in left_out)
    lines.append("Left out: " + ", ".join(f"{count} {group}" for group, count in sorted(counted.items())) + ".")
    lines += [f"- {name}: {reason}" for name, reason in sorted(left_out.items())]
    wrong = sorted((found for found in answers if not found.right), key=lambda found: found.name)
    lines += ["", "Wrong:" if wrong else "Nothing is wrong.", ""]
    for found in wrong:
        first = found.named[0].split(" | ")[0] if found.named else "nobody"
        lines.append(
            f"- {found.name} ({found.loss:.2g}): run {found.run_exit}, {found.verdict} {found.diagnose_exit}, {first}"
        )
    return "\n".join(lines)


def _by_kind(answers: Sequence[FileAnswer]) -> list[str]:
    kinds: dict[str, list[FileAnswer]] = collections.defaultdict(list)
    for found in answers:
        file, _, mistake = found.name.split("/")[3].partition(",")
        kinds[f"{found.group} {mistake or file.partition('-')[0]}"].append(found)
    return [f"| {kind} | {_share(found, lambda a: a.right)} |" for kind, found in sorted(kinds.items())]


def _share(answers: Sequence[FileAnswer], good: Callable[[FileAnswer], object]) -> str:
    count = sum(bool(good(found)) for found in answers)
    return f"{count} of {len(answers)} ({count / len(answers):.0%})" if answers else "-"


def _seconds(found: Sequence[float]) -> str:
    return f"{sorted(found)[len(found) // 2]:.1f}, {max(found):.1f}" if found else "-"

"""What the truth corpus says, counted: false alarms, misses, culprits, confidence; as Markdown."""

import collections
import dataclasses
import itertools
from collections.abc import Callable, Iterable, Sequence

CLEAR = 3.0
"""Size from which a fault is nine tenths of the squared error at the outputs; what a verdict is expected to see."""
SIZES = (0.0, 1.0, 3.0, 10.0, 100.0, float("inf"))


@dataclasses.dataclass(frozen=True)
class Answer:
    """What `diagnose` said of a case, and what is right; fields as in `truth_cases.Case` and `Verdict`."""

    name: str
    kind: str
    size: float
    verdicts: Sequence[str]
    culprits: Sequence[str]
    verdict: str
    confidence: float
    named: Sequence[str]
    summary: str
    command: str
    seconds: float

    @property
    def healthy(self) -> bool:
        """Whether nothing is wrong with the engine."""
        return self.name.startswith("healthy/")

    @property
    def absent(self) -> bool:
        """Whether the engine cannot be used, or refuses the model by itself: not counted."""
        return self.verdict in ("error[precision-unsupported]", "error[engine-missing]", "error[engine-not-installed]")

    @property
    def right(self) -> bool:
        """Whether the verdict is a right one."""
        return self.verdict in self.verdicts

    @property
    def blamed(self) -> bool:
        """Whether the first culprit is a right one; True where there is none to name."""
        return not self.culprits or self.missed or (bool(self.named) and self.named[0] in self.culprits)

    @property
    def missed(self) -> bool:
        """Whether the engine was acquitted."""
        return self.verdict in ("match", "rounding")

    def told(self) -> str:
        """Return one line."""
        good = "right" if self.right and self.blamed else "WRONG"
        size = f"{self.size:8.2g}x" if not self.healthy else " " * 9
        return f"{good} {self.name:60} {size} {self.verdict:22} {self.confidence:4.2f} {self.seconds:6.1f} s"


@dataclasses.dataclass(frozen=True)
class GoldenAnswer:
    """What `run` or `diagnose` said of golden values.

    Attributes:
        name: ``golden/COMMAND/MODEL/ORIGIN/FORM``.
        wrong: Whether they are those of another model.
        failed: Whether the command called them wrong; None when it ended otherwise.
        said: Exit code or verdict, and the last words.
        command: What reproduces it.
        seconds: What it took.
    """

    name: str
    wrong: bool
    failed: bool | None
    said: str
    command: str
    seconds: float

    @property
    def right(self) -> bool:
        """Whether wrong values failed and right ones passed."""
        return self.failed is self.wrong

    def told(self) -> str:
        """Return one line."""
        return f"{'right' if self.right else 'WRONG'} {self.name:70} {self.said[:60]} {self.seconds:5.1f} s"


def report(answers: Sequence[Answer], golden: Sequence[GoldenAnswer], commit: str) -> str:
    """Return everything as Markdown."""
    counted = [answer for answer in answers if not answer.absent]
    parts = [f"`python bench/truth.py --cases N --golden --write` on {commit}."]
    if counted:
        parts += [_summary(counted), _by_size(counted), _by_kind(counted), _confidence(counted)]
    if golden:
        parts.append(_golden(golden))
    parts.append(_wrong_cases(counted, golden))
    return "\n\n".join(part for part in parts if part)


def _share(answers: Iterable[Answer], good: Callable[[Answer], object]) -> str:
    every = list(answers)
    count = sum(bool(good(answer)) for answer in every)
    return f"{count} of {len(every)} ({count / len(every):.0%})" if every else "-"


def _missed(answer: Answer) -> bool:
    return answer.missed


def _right(answer: Answer) -> bool:
    return answer.right


def _right_and_blamed(answer: Answer) -> bool:
    return answer.right and answer.blamed


def _summary(answers: Sequence[Answer]) -> str:
    healthy = [answer for answer in answers if answer.healthy]
    faulty = [answer for answer in answers if not answer.healthy]
    clear = [answer for answer in faulty if answer.size >= CLEAR]
    rows = [
        ("healthy: false alarms", _share(healthy, lambda a: not a.right)),
        (f"faulty, size from {CLEAR:g}: right verdict", _share(clear, lambda a: a.right)),
        (f"faulty, size from {CLEAR:g}: right first culprit", _share(clear, lambda a: a.blamed and a.right)),
        (f"faulty, size from {CLEAR:g}: missed (match or rounding)", _share(clear, lambda a: a.missed)),
        ("all: right verdict", _share(answers, lambda a: a.right)),
        ("median seconds of a diagnosis", f"{sorted(a.seconds for a in answers)[len(answers) // 2]:.1f}"),
    ]  # fmt: skip
    return _table(("what", "figure"), rows)


def _by_size(answers: Sequence[Answer]) -> str:
    rows = []
    for least, most in itertools.pairwise(SIZES):
        inside = [a for a in answers if not a.healthy and (least <= a.size < most or most == a.size == SIZES[-1])]
        if inside:
            shares = (_share(inside, good) for good in (_missed, _right, _right_and_blamed))
            rows.append((f"{least:g} to {most:g}", len(inside), *shares))
    head = ("size of the fault over the engine's rounding", "cases", "missed", "right verdict", "and culprit")
    return _table(head, rows)


def _by_kind(answers: Sequence[Answer]) -> str:
    kinds: dict[str, list[Answer]] = collections.defaultdict(list)
    for answer in answers:
        kinds[("healthy: " if answer.healthy else "") + answer.kind].append(answer)
    rows = []
    for kind, found in sorted(kinds.items()):
        others = collections.Counter(a.verdict for a in found if not a.right)
        rows.append((kind, _share(found, lambda a: a.right), ", ".join(f"{v} {n}" for v, n in others.most_common())))
    return _table(("engine or fault", "right", "other verdicts"), rows)


def _confidence(answers: Sequence[Answer]) -> str:
    deciles: dict[int, list[Answer]] = collections.defaultdict(list)
    for answer in answers:
        deciles[min(9, int(answer.confidence * 10))].append(answer)
    rows = []
    for decile, found in sorted(deciles.items()):
        stated = sum(a.confidence for a in found) / len(found)
        rows.append((f"{decile / 10:.1f} to {(decile + 1) / 10:.1f}", len(found), f"{stated:.2f}",
                     _share(found, lambda a: a.right and a.blamed)))  # fmt: skip
    of_all = _table(("stated confidence", "cases", "mean stated", "right with culprit"), rows)
    stated_as: dict[tuple[str, float], list[Answer]] = collections.defaultdict(list)
    for answer in answers:
        stated_as[answer.verdict, round(answer.confidence, 2)].append(answer)
    each = [(verdict, f"{stated:.2f}", len(found), _share(found, lambda a: a.right and a.blamed))
            for (verdict, stated), found in sorted(stated_as.items())]  # fmt: skip
    return of_all + "\n\n" + _table(("verdict", "stated confidence", "cases", "right with culprit"), each)


def _golden(golden: Sequence[GoldenAnswer]) -> str:
    groups: dict[tuple[str, str, str], list[GoldenAnswer]] = collections.defaultdict(list)
    for answer in golden:
        _, command, _, origin, _ = answer.name.split("/")
        groups[command, "wrong, must fail" if answer.wrong else "right, must pass", origin].append(answer)
    rows = [
        (command, truth, origin, f"{sum(a.right for a in found)} of {len(found)}")
        for (command, truth, origin), found in sorted(groups.items())
    ]
    for command in ("run", "diagnose"):
        for wrong in (True, False):
            found = [a for a in golden if a.wrong is wrong and a.name.startswith(f"golden/{command}/")]
            rows.append((command, "wrong, must fail" if wrong else "right, must pass", "all",
                         f"{sum(a.right for a in found)} of {len(found)}"))  # fmt: skip
    return _table(("command", "golden values", "origin", "as it must"), rows)


def _wrong_cases(answers: Sequence[Answer], golden: Sequence[GoldenAnswer]) -> str:
    lines = []
    for answer in answers:
        if not (answer.right and answer.blamed):
            planted = f" (planted in {answer.culprits[0]}, {answer.size:.2g}x)" if answer.culprits else ""
            first = answer.named[0] if answer.named else "no culprit"
            said = f"{answer.verdict} {answer.confidence:.2f}, {first}{planted}"
            lines.append(f"- {answer.name}: {said}: `{answer.command}`")
    lines += [f"- {answer.name}: {answer.said[:80]}: `{answer.command}`" for answer in golden if not answer.right]
    return "Wrong:\n\n" + "\n".join(lines) if lines else "Nothing is wrong."


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(str(cell) for cell in row) + " |" for row in rows)])

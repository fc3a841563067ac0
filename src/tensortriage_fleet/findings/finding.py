"""The findings in a command's document: one for each op to blame, else for each output beyond its limit.

A document is read as plain data, as other programs would read it, so that the case of a diagnosis, the cell of a batch
and a file that was kept are the same here.
"""

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tensortriage.api import VerdictKind
from tensortriage.sdk import times

Document = Mapping[str, Any]

BEYOND, INVALID, REFERENCE_WRONG = "beyond-limit", "invalid-output", "reference-wrong"
"""Rules of findings of ``triage run``; those of a diagnosis are its verdicts, those of an error its slug."""


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong.

    Attributes:
        rule: Verdict, slug of an error, rule of ``check lint``, or kind of result of ``triage run``.
        title: The finding with the op or the output, in a few words.
        message: One sentence, with magnitudes.
        output: The model's output that is worst; empty when not known.
        ratio: Error of that output over its limit; None where it has no limit.
        node: The node to blame, of ``triage run`` the one that makes the output; empty when not known.
        op_type: Its operator.
        module: Its module in the source network, with class and line; empty when the file does not hold it.
        file: Source file from which the exporter made the node, as it wrote it; empty likewise.
        line: Line in it, from 1; 0 when not known.
        is_sure: Whether it is a problem, rather than a question that stayed open.
    """

    rule: str
    title: str
    message: str
    output: str = ""
    ratio: float | None = None
    node: str = ""
    op_type: str = ""
    module: str = ""
    file: str = ""
    line: int = 0
    is_sure: bool = True

    @property
    def op(self) -> str:
        """Operator and node."""
        return f"{self.op_type} '{self.node}'".strip() if self.node else self.op_type

    @property
    def ratio_words(self) -> str:
        """The output's error as a multiple of its limit; empty without a number."""
        return times(self.ratio) if self.ratio is not None and math.isfinite(self.ratio) else ""

    @property
    def output_words(self) -> str:
        """The output and how far it is beyond its limit; empty without an output."""
        far = f": {self.ratio_words} its limit" if self.ratio_words else ""
        return self.output and f"output '{self.output}'{far}"

    @property
    def details(self) -> tuple[str, ...]:
        """The uncertainty of the message: output, op and module."""
        word = "made by" if self.rule == BEYOND else "op"  # nobody has said that it is to blame
        named = [f"{word} {self.op}" if self.op else "", f"module {self.module}" if self.module else ""]
        return tuple(filter(None, (self.output_words, *named)))


def findings_of(document: Document) -> tuple[Finding, ...]:
    """Return the faults in a document; none for a document without faults or of a kind that names no op."""
    read = _READERS.get(kind_of(document))
    return tuple(read(document)) if read is not None else ()


def kind_of(document: Document) -> str:
    """Return the word of a document's format: ``run`` for ``tensortriage.run/1``."""
    return str(document.get("format", "")).partition("/")[0].removeprefix("tensortriage.")


def _diagnosis(document: Document) -> Iterator[Finding]:
    verdict = document["verdict"]
    word = verdict["verdict"]
    known = word in {kind.value for kind in VerdictKind}  # a newer version may have others
    code = 1 if verdict.get("lost") or not known else VerdictKind(word).exit_code
    if not code:
        return
    output, ratio = _worst_output(document)
    culprits = verdict.get("culprits") or [{}]
    for place, culprit in enumerate(culprits):
        origin = culprit.get("origin") or {}
        found = Finding(
            word,
            word,
            verdict["summary"] if not place else culprit.get("reason") or verdict["summary"],
            output,
            ratio,
            culprit.get("node", ""),
            culprit.get("op_type", ""),
            _module_words(origin),
            origin.get("file", ""),
            origin.get("line", 0),
            code == 1,
        )
        yield dataclasses.replace(found, title=f"{word} at {found.op}" if found.op else word)


def _worst_output(document: Document) -> tuple[str, float | None]:
    """Return the output that is worst, and its error over its limit.

    Rounding's prediction for an output that is lost to it is no limit.
    """
    rows = [row for row in (document.get("outputs") or {}).get("rows", ()) if not row["within"]]
    if not rows:
        return "", None
    worst = max(rows, key=lambda row: (bool(row["nonfinite_target"]), _number(row.get("figure"))))
    error, limit = worst.get("relative_rms_error"), worst.get("limit")
    if worst["nonfinite_target"] or error is None or not limit:
        return worst["name"], None
    ratio = _number(error) / _number(limit)
    return worst["name"], ratio if ratio > 1.0 else None


def _run(document: Document) -> Iterator[Finding]:
    for name, ended in document["outcomes"].items():
        if ended["kind"] != "ok":
            yield Finding(ended["kind"], f"{ended['kind']} on {name}", ended["message"])
    for found in document.get("disagreements", ())[:1]:
        message = f"the reference and the model disagree: '{found['value']}' is off (limit: {found['limit']})"
        title = f"{REFERENCE_WRONG} at {found['op_type']} '{found['node']}'"
        yield Finding(REFERENCE_WRONG, title, message, node=found["node"], op_type=found["op_type"])
    for row in _worst_rows(document):
        judgement = row["judgement"]
        far = f"{row['measure']} {row['figure']:.3g}" if isinstance(row.get("figure"), float) else row.get("note", "")
        message = f"'{row['value']}' is beyond its limit ({judgement['limit']})" + (f": {far}" if far else "")
        yield Finding(
            BEYOND,
            f"'{row['value']}' is beyond its limit",
            message,
            row["value"],
            _number(judgement["ratio"]),
            row.get("node", ""),
            row.get("op_type", ""),
            row.get("module", ""),
        )
    for found in document.get("invalid", ()):
        message = f"'{found['output']}' of {found['participant']} has {found['nan']} NaN and {found['inf']} Inf"
        yield Finding(INVALID, f"NaN or Inf in '{found['output']}'", message, found["output"])
    if document.get("unevaluated"):
        yield Finding("no-limit", "no limit can be set", document["unevaluated"], is_sure=False)


def _worst_rows(document: Document) -> Iterable[Document]:
    """Return of each value that is beyond its limit the worst row, in topological order."""
    worst: dict[str, Document] = {}
    for compared in document["comparisons"]:
        for row in compared["comparison"]["rows"]:
            if not row["judgement"]["within"]:
                known = worst.setdefault(row["value"], row)
                if _number(row["judgement"]["ratio"]) > _number(known["judgement"]["ratio"]):
                    worst[row["value"]] = row
    return worst.values()


def _error(document: Document) -> Iterator[Finding]:
    message = ". ".join(filter(None, (document["message"], document.get("cure", ""))))
    yield Finding(document["slug"], document["slug"], message)


def _lint(document: Document) -> Iterator[Finding]:
    for found in document["findings"]:
        if found["severity"] != "hint":
            origin = found.get("origin") or {}
            place = f"{found['op_type']} '{found['node']}'" if found["node"] else found["value"]
            yield Finding(
                found["slug"],
                f"{found['slug']} at {place}" if place else found["slug"],
                f"{found['why']}: {found['cure']}" if found["cure"] else found["why"],
                node=found["node"],
                op_type=found["op_type"],
                module=_module_words(origin),
                file=origin.get("file", ""),
                line=origin.get("line", 0),
            )


def _steps(document: Document) -> Iterator[Finding]:
    verdict = document["verdict"]
    if verdict in ("match", "drift"):
        return
    blamed = document.get("diagnosis") or {}
    first, output = document.get("first"), document.get("value", "")
    values = document["rows"][first]["values"] if first is not None and first < len(document["rows"]) else ()
    ratios = [_number(value["ratio"]) for value in values if value["value"] == output]
    found = Finding(
        verdict, "", document["summary"], output, max(ratios, default=None), blamed.get("node", ""),
        blamed.get("op_type", ""), blamed.get("module", ""), is_sure=verdict != "inconclusive",
    )  # fmt: skip
    where = "".join((f" at step {first}" if first is not None else "", f", {found.op}" if found.op else ""))
    yield dataclasses.replace(found, title=f"{verdict}{where}")


def _consistency(document: Document) -> Iterator[Finding]:
    for entry in document["answers"]:
        if entry["outcome"] in ("broken", "refused"):
            output = (entry.get("parting") or {}).get("value", "")
            message = f"{entry['question']} {entry['answer']}"
            yield Finding(
                entry["relation"], entry["relation"], message, output, node=entry["node"], op_type=entry["op_type"]
            )


_READERS = {"report": _diagnosis, "run": _run, "error": _error, "lint": _lint, "steps": _steps,
            "consistency": _consistency}  # fmt: skip


def _module_words(origin: Document) -> str:
    name, kind = origin.get("module", ""), origin.get("module_class", "")
    return f"{name} ({kind})" if name and kind else name or kind


def _number(value: object) -> float:
    """Return a number of a document, where non-finite ones are texts; NaN counts as infinite."""
    number = 0.0 if value is None else float(value)  # type: ignore[arg-type] # checked by its schema
    return math.inf if math.isnan(number) else number

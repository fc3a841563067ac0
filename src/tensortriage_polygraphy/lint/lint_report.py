"""``triage polygraphy check lint``: the report, the lines and the verdict that Polygraphy would give.

It knows onnx.checker, every node on ONNX Runtime, names that occur twice, and unused parts; our rules are left out.
Messages are those of Polygraphy 0.53.6, as scripts compare them.
"""

import dataclasses
import json
import logging
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tensortriage.api import Model
from tensortriage.sdk import LintFinding, ModelError, Severity, grouped, read_message, write_text
from tensortriage_polygraphy.lint.linter import LintReport, lint_model
from tensortriage_polygraphy.lint.request import LintRequest

_logger = logging.getLogger("tensortriage.polygraphy")
_KIND = re.compile(r"\) \[\w+\]")
_REASON = re.compile(r"[,)] Error (.*)", re.DOTALL)
_NO_OPERATOR, _CUSTOM = "No Op registered for", "is not a registered function/op"
_UNDECLARED = re.compile(r"No opset import for domain '(?!ai\.onnx')(.+)'")  # GraphSurgeon declares it and asks again
_LOGGED = {"exception": logging.ERROR, "warning": logging.WARNING}


@dataclasses.dataclass(frozen=True, slots=True)
class LintEntry:
    """One thing that was found.

    Attributes:
        level: ``exception`` or ``warning``.
        source: The linter that reports it.
        message: The finding.
        node: The node it is about; empty for the whole model.
        op_type: Operator of the node.
    """

    level: str
    source: str
    message: str
    node: str = ""
    op_type: str = ""

    def document(self) -> dict[str, object]:
        """Return the finding as in the file."""
        found: dict[str, object] = {"level": self.level, "source": self.source, "message": self.message}
        return found | ({"nodes": [self.node]} if self.node else {})

    def tell(self) -> None:
        """Log it."""
        place = f"Name: {self.node}, Op: {self.op_type} | " if self.op_type else ""
        _logger.log(_LOGGED[self.level], "LINT | %s%s", place, self.message)


def lint(request: LintRequest, output: Path | None) -> bool:
    """Lint a model, report the findings, and return whether it passes."""
    try:
        found = lint_model(request)
    except ModelError as error:
        if error.slug != "model-unreadable":
            raise
        report_unreadable(error, output)
        return False
    return report(found, request.model, request.external_data_dir, output)


def report_unreadable(error: ModelError, output: Path | None) -> None:
    """Report and write that there is no model in the file."""
    message = f"Error parsing message with type 'onnx.ModelProto': {error.message}"
    _finish([LintEntry("exception", "onnx_loader", message)], [], [], output)


def report(found: LintReport, model: Path, external_data_dir: Path | None, output: Path | None) -> bool:
    """Show and write the findings.

    Args:
        found: Our linter's findings.
        model: The file.
        external_data_dir: Folder of external data, when not that of the model.
        output: File of the report; None to write none.

    Returns:
        Whether the model passes there.
    """
    refused = [each for each in found.findings if each.severity is Severity.EXCEPTION]
    loaded = not any(finding.source == "onnx_loader" for finding in refused)
    names = _names(model, external_data_dir) if loaded else {}
    twice = _named_twice(model) if loaded else []
    entries = twice or list(_entries(found.findings, names))
    unused = {entry.node for entry in entries if entry.source == "onnx_graphsurgeon"}
    custom = {entry.node for entry in entries if entry.level == "warning" and entry.node} - unused
    passing = [*({names.get(name, name) for name in found.passing} - unused), *custom]
    failing = [name for name in (names.get(name, name) for name in found.failing) if name not in custom]
    if twice:
        passing, failing = [], [entry.node for entry in twice]
    return _finish(entries, passing, failing, output)


def _finish(entries: Sequence[LintEntry], passing: Sequence[str], failing: Sequence[str], output: Path | None) -> bool:
    for entry in entries:
        entry.tell()
    if output is not None:
        _logger.info("Saving linting report to %s", output)
        summary = {"passing": sorted(set(passing)), "failing": sorted(set(failing))}
        document = {"summary": summary, "lint_entries": [entry.document() for entry in entries]}
        write_text(output, json.dumps(document, ensure_ascii=False, indent=4) + "\n")
    return not any(entry.level == "exception" for entry in entries)


def _entries(findings: Sequence[LintFinding], names: dict[str, str]) -> Iterator[LintEntry]:
    unused = []
    for finding in findings:
        node = names.get(finding.node, finding.node)
        if finding.slug == "model-empty":
            yield LintEntry("warning", "onnx_loader", "ONNX model has no nodes")
        elif finding.slug == "input-unused":
            message = f"Input: '{finding.value}' does not affect outputs, can be removed."
            yield LintEntry("warning", "onnx_graphsurgeon", message)
        elif finding.slug == "node-unused":
            unused.append(LintEntry("warning", "onnx_graphsurgeon", "Does not affect outputs, can be removed.", node,
                                finding.op_type))  # fmt: skip
        elif finding.severity is not Severity.EXCEPTION or finding.source == "rule":
            continue
        elif finding.source in ("onnx_loader", "onnx_checker"):
            if _NO_OPERATOR not in finding.why and not _UNDECLARED.search(finding.why):
                source = "onnx_checker" if finding.slug == "value-defined-twice" else finding.source
                yield LintEntry("exception", source, finding.why)
        else:
            message = _core(finding.why)
            if undeclared := _UNDECLARED.search(message):
                message = f"Fatal error: {undeclared[1]}:{finding.op_type}(-1) {_CUSTOM}"
            level = "warning" if _CUSTOM in message else "exception"
            yield LintEntry(level, finding.source, message, node, finding.op_type)
    yield from unused


def _core(why: str) -> str:
    """Return ONNX Runtime's message about a node, without the words around it."""
    text = why.removeprefix("ONNX Runtime refused the model: ")
    text = text.removeprefix("This is an invalid model. ")
    inferred = text.partition("Node (")[2].partition(") Op (")[2]  # "Node (NAME) Op (TYPE) [KIND] what"
    if kind := _KIND.search(inferred):
        return inferred[kind.end() :]
    found = _REASON.search(text)
    return found[1] if found else text


def _names(path: Path, external_data_dir: Path | None) -> dict[str, str]:
    """Return our names of unnamed nodes to Polygraphy's."""
    nodes = read_message(path).proto.graph.node
    if all(node.name for node in nodes):
        return {}
    named = {node.name for node in nodes}
    made: dict[str, str] = {}
    for index, node in enumerate(nodes):
        if node.name or not any(node.output):
            continue
        name, count = f"polygraphy_unnamed_node_{index}", 0
        while name in named:
            name, count = f"polygraphy_unnamed_node_{index}_{count}", count + 1
        named.add(name)
        made[next(filter(None, node.output))] = name
    model = Model.load(path, external_data_dir=external_data_dir)
    return {
        node.name: made[output] for node in model.graph.nodes for output in node.outputs if output in made
    }  # fmt: skip


def _named_twice(path: Path) -> list[LintEntry]:
    nodes = enumerate(read_message(path).proto.graph.node)
    places = grouped((node.name, index) for index, node in nodes if node.name)
    return [
        LintEntry("exception", "onnx_graphsurgeon",
              f"Duplicate node name: '{name}' for nodes with topological IDs: {found} found.", name)
        for name, found in places.items() if len(found) > 1
    ]  # fmt: skip

"""The result of an edit, as text and as JSON."""

from typing import NoReturn

from tensortriage.cli.documents import answer
from tensortriage.values.text import error_size, size
from tensortriage.workflows.edits.edit_pipeline import SurgeryResult
from tensortriage.workflows.edits.verify_edit import Proof


def show_edit(result: SurgeryResult, *, as_json: bool) -> NoReturn:
    """Show a result and end the command.

    Raises:
        SystemExit: Always, with 0.
    """
    answer(result, lines(result), as_json=as_json)
    raise SystemExit(0)


def lines(result: SurgeryResult) -> list[str]:
    """Return a result as lines of text."""
    found = [f"{result.model} -> {result.output}"]
    width = max(len(report.name) for report in result.passes)
    nodes, nbytes = result.nodes_before, result.weight_bytes_before
    for report in result.passes:
        changes = []
        if report.nodes != nodes:
            changes.append(f"{nodes} -> {report.nodes} nodes")
        if report.weight_bytes != nbytes:
            changes.append(f"weights {size(nbytes)} -> {size(report.weight_bytes)}")
        what = ", ".join(changes) or f"{report.nodes} nodes, weights {size(report.weight_bytes)}, as before"
        found.append(f"  {report.name:<{width}}  {what}")
        nodes, nbytes = report.nodes, report.weight_bytes
    found += [f"note: {notice}" for notice in result.notices]
    found += [f"wrote {file}" for file in result.files]
    found.append(_proof(result.proof))
    return found


def _proof(proof: Proof) -> str:
    if not proof.verified:
        return f"not verified: {proof.reason}"
    feeds = proof.feeds[0] if len(proof.feeds) == 1 else f"{len(proof.feeds)} feeds"
    data = f"{feeds} ({proof.inputs} data, {proof.engine})"
    if not proof.outputs:
        return f"verified: it runs on {data}"
    worst = max(proof.outputs, key=lambda output: (output.ratio, output.relative_rms_error))
    if not worst.relative_rms_error:
        return f"verified on {data}: the outputs did not move at all"
    error = f"{error_size(worst.relative_rms_error)} (relative RMS)"
    return f"verified on {data}: '{worst.name}' moved most, by {error}, {worst.ratio:.2f} of its limit"

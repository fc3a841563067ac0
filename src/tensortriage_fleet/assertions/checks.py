"""The assertions: each runs one command, and fails with its sentence, its culprit, its limit and its report."""

import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tensortriage

if TYPE_CHECKING:
    from tensortriage.api import CompareResult, Verdict

CASES: list[Path] = []
"""Where the cases of tests are kept: the plugin puts the folder of pytest's cache here."""
_MOST = 5
"""Tensors and culprits that a failure lists."""
_LONGEST = 120
"""Characters of a test's name in the name of its folder."""


def assert_sound(model: object, target: str, *, inputs: object = None, **more: Any) -> "Verdict":
    """Assert that an engine computes the model correctly, or that its number format explains the error.

    Args:
        model: As `tensortriage.diagnose` takes it.
        target: The engine.
        inputs: The model's inputs; made up without any.
        **more: Further fields of `tensortriage.api.DiagnoseRequest`.

    Returns:
        The verdict, whose exit code is 0.

    Raises:
        AssertionError: For any other verdict.
    """
    __tracebackhide__ = True
    more.setdefault("case", _case(f"{_named(model)} {target}"))
    verdict: Verdict = tensortriage.diagnose(model, target, inputs=inputs, **more)
    if verdict.exit_code:
        report = Path(more["case"]) / "report.html"
        raise AssertionError(
            "\n".join([f"{_named(model)} on {target}: {verdict.in_short}", *_evidence(verdict, report)])
        )
    return verdict


def assert_close(
    actual: Any, expected: Any, *, model: object = None, inputs: object = None, tolerance: object = None
) -> "CompareResult":
    """Assert that outputs are as near to others as healthy engines are, on a model and its inputs.

    Args:
        actual: Outputs, as `tensortriage.compare` takes them.
        expected: Outputs assumed to be right.
        model: The model that both are of; its noise floor is the limit.
        inputs: The inputs that they were computed from.
        tolerance: The limit instead of the noise floor, needed where there is no model.

    Raises:
        AssertionError: When an output is beyond its limit, or the expected ones are not the model's.
    """
    __tracebackhide__ = True
    return _passed(tensortriage.compare(expected, actual, model=model, inputs=inputs, tolerance=tolerance), "outputs")


def assert_same(model: object, targets: Sequence[str], *, inputs: object = None, **more: Any) -> "CompareResult":
    """Assert that engines agree on a model: each with the first, within the difference between healthy engines.

    Args:
        model: As `tensortriage.run` takes it.
        targets: The engines, the first assumed to be right.
        inputs: The model's inputs; made up without any.
        **more: Further fields of `tensortriage.api.CompareRequest`.

    Raises:
        AssertionError: When one does not agree, or fails.
    """
    __tracebackhide__ = True
    reference, *others = targets
    return _passed(tensortriage.run(model, others, reference=reference, inputs=inputs, **more), _named(model))


def _passed(result: "CompareResult", what: str) -> "CompareResult":
    __tracebackhide__ = True
    if result.exit_code:
        raise AssertionError("\n".join([f"{what}: {result.in_short}", *_beyond(result)]))
    return result


def _evidence(verdict: "Verdict", report: Path) -> Iterator[str]:
    for culprit in verdict.culprits[:_MOST]:
        yield f"  culprit: {culprit.op_type} '{culprit.node}'" + (f": {culprit.reason}" if culprit.reason else "")
    if verdict.remedy is not None:
        yield f"  remedy: {verdict.remedy.summary}"
    yield from (f"  next: {command}" for command in verdict.next[:1])
    yield f"  report: {report.absolute()}"


def _beyond(result: "CompareResult") -> Iterator[str]:
    rows = [row for row in result.records if not row["within"]]
    for row in rows[:_MOST]:
        op = f", {row['op_type']} '{row['node']}'" if row["node"] else ""
        yield f"  '{row['value']}' on {row['feed']}: {row['ratio']:.3g} times its limit ({row['limit']}){op}"
    if rows[_MOST:]:
        yield f"  ... and {len(rows) - _MOST} more"
    for found in result.disagreements[:1]:
        yield f"  {result.reference} and the model disagree: '{found.value}' is off by {found.error:.3g}"
    for name, outcome in result.outcomes.items():
        if not outcome.ok:
            yield f"  {name}: {outcome.kind.value}: {outcome.message}"
    if result.unevaluated:
        yield f"  no limit can be set: {result.unevaluated}"


def _named(model: object) -> str:
    return os.fspath(model) if isinstance(model, (str, os.PathLike)) else f"the {type(model).__name__}"


def _case(what: str) -> Path:
    """Return the folder of a case: one for each test and question, so that a test that is run again goes on."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    return (CASES[-1] if CASES else _temporary()) / re.sub(r"[^\w.=-]+", "-", f"{test} {what}")[-_LONGEST:].strip("-")


@cache
def _temporary() -> Path:
    return Path(tempfile.mkdtemp(prefix="triage-cases-"))

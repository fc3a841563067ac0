"""The progress of ``triage debug precision``, and its result."""

import contextlib
import math
import sys
from collections.abc import Iterator
from typing import NoReturn

from tensortriage.cli import guard
from tensortriage.cli.documents import print_document
from tensortriage.cli.progress import Teller
from tensortriage.engines.registry import resolve
from tensortriage.engines.spec import EngineSpec
from tensortriage.precision.plan import Point, PrecisionPlan
from tensortriage.precision.search.request import PrecisionRequest
from tensortriage.precision.selection.typed_candidates import typed_file_note
from tensortriage.values.dtype import Precision
from tensortriage.values.serial import to_json
from tensortriage.values.text import count, duration, error_size, magnitude, percent
from tensortriage.workflows.find_precision import find_precision

SHOWN_NODES, SHOWN_POINTS, LONGEST_SETTING = 30, 12, 400


def search_and_show(request: PrecisionRequest, *, as_json: bool) -> NoReturn:
    """Search with progress lines, show the result and exit."""
    guard.about_to(guard.WRITES)
    teller = Teller(err=as_json)
    with contextlib.closing(teller):
        plan = find_precision(request, listener=teller)
    if as_json:
        print_document(to_json(plan))
    teller.tell("\n".join(summary(plan)))
    sys.exit(plan.exit_code)


def summary(plan: PrecisionPlan) -> Iterator[str]:
    """Yield the lines that end a search."""
    yield ""
    yield from _nodes(plan)
    yield from _outputs(plan)
    yield from _curve(plan)
    yield from _read_back(plan)
    for remedy in plan.remedies:
        where = f", {remedy.file}" if remedy.file else ""
        left = f"then {count(remedy.kept, 'node')} kept, error {error_size(remedy.error)}"
        yield f"remedy {remedy.name}: {remedy.what}; {left}{where}"
    if plan.kept:
        yield "the same for other tools:"
        yield from (f"  {tool}: {text}" for tool, text in plan.settings.items() if len(text) < LONGEST_SETTING)
        if long := [tool for tool, text in plan.settings.items() if len(text) >= LONGEST_SETTING]:
            yield f"  {', '.join(long)}: too long to show, in precision.json"
    yield from (f"written: {path}" for path in plan.files.values())
    if "model" in plan.files and plan.nodes and plan.precision in ("fp16", "bf16"):
        yield typed_file_note(Precision(plan.precision))
    if plan.accuracy is not None:
        yield f"the written file: {plan.accuracy.words}"
    if plan.exit_code == 4:
        yield "missed: the written file does not reach the goal on all inputs; it is kept"
    if not plan.confirmed:
        yield f"not confirmed: the {'target' if plan.asked == 'engine' else 'check'} has not run with this choice yet"
    if plan.interrupted:
        yield "interrupted: run the same command to resume"
    judge = "build" if plan.asked == "engine" else "check"
    known = f" ({plan.known} more known from the case)" if plan.known else ""
    yield f"{count(plan.builds, judge)}{known}, {count(plan.emulated, 'emulated run')}, {duration(plan.seconds)}"
    for command in plan.next:
        yield f"next: {command}"


def _nodes(plan: PrecisionPlan) -> Iterator[str]:
    if not plan.nodes:
        yield f"good enough with every node in {plan.precision}: none of {plan.candidates} needs {plan.higher}"
        return
    share = (
        ""
        if plan.low_share is None
        else f"; {percent(plan.low_share)} of MatMul, Gemm and Conv work in {plan.precision}"
    )
    yield f"keep {len(plan.nodes)} of {plan.candidates} nodes in {plan.higher}, the others in {plan.precision}{share}:"
    for node in plan.nodes[:SHOWN_NODES]:
        yield f"  {node.op_type} '{node.node}': {node.reason}" + (
            f" (without it: {node.without})" if node.without else ""
        )
        if origin := node.origin.beside(node.node):
            yield f"    from {origin}"
    if len(plan.nodes) > SHOWN_NODES:
        yield f"  ... and {len(plan.nodes) - SHOWN_NODES} more, in precision.json"
    between = len(plan.kept) - len(plan.nodes)
    if between:
        yield f"  with {count(between, 'node')} between them that only pass numbers through"
    if plan.fixed:
        yield f"{count(len(plan.fixed), 'node')} more cannot be written in {plan.precision} and stay as they are"
    word = {"one-minimal": "none of them can be left out", "prefix": "all up to the last one needed"}
    yield "minimal: " + word.get(plan.minimality, "not shown; more builds may find fewer")


def _outputs(plan: PrecisionPlan) -> Iterator[str]:
    error = plan.error
    if error.measured is not None:
        yield (
            f"outputs: error {_number(error.measured)} on {plan.deployed}, {_number(error.predicted)} predicted; "
            f"{_number(error.as_asked)} with none kept, on {plan.target}; wanted: {error.goal}"
        )
    asked, measured = error.as_asked, error.measured
    own = plan.target and resolve(EngineSpec.parse(plan.target)).precision.value == plan.precision
    if own and not plan.nodes and asked is not None and measured is not None and asked <= measured:
        yield f"{plan.target} is as accurate with the unchanged model: the typed one is for engines that follow types"
    if error.metric is not None:
        yield f"metric: {magnitude(error.metric, 6)}, of the reference {magnitude(error.metric_reference, 6)}"
    if not error.explained:
        yield (
            "the target is worse than rounding to the format explains (by more than 3 dB): something else is wrong as "
            "well, and triage debug reduce finds it"
        )
    if plan.inputs == "random":
        yield "on random inputs, which prove little: give --inputs"


def _curve(plan: PrecisionPlan) -> Iterator[str]:
    if len(plan.pareto) < 2:
        return
    yield "accuracy by number of kept nodes:"
    for point in plan.pareto[:SHOWN_POINTS]:
        yield "  " + _point(point)


def _point(point: Point) -> str:
    metric = "" if point.metric is None else f", metric {magnitude(point.metric, 6)}"
    latency = "" if point.latency_ms is None else f", {magnitude(point.latency_ms)} ms"
    where = "measured" if point.measured else "emulated"
    decibels = "-inf" if math.isinf(point.error) else f"{point.sqnr_db:.1f}"
    return f"{point.kept:4d} kept: {decibels} dB{metric}{latency}  ({where}{', good enough' if point.within else ''})"


def _read_back(plan: PrecisionPlan) -> Iterator[str]:
    found = plan.honoured
    if found is None or not found.told:
        return
    if found.narrower:
        yield f"the engine ignores it for {count(len(found.narrower), 'kept node')}: " + ", ".join(found.narrower[:5])
    else:
        kept = f"every kept node computes in {plan.higher}, " if plan.kept else ""
        yield f"read back from the engine: {kept}{count(found.regions, 'region')} judged"
    if found.wider:
        yield f"  wider than requested: {count(len(found.wider), 'other node')}, e.g. '{found.wider[0]}'"


def _number(error: float | None) -> str:
    if error is None:
        return "not measured"
    return "NaN or Inf" if math.isinf(error) else error_size(error)

"""What ``diagnose`` and ``demo`` share: building the request, telling the progress, showing the verdict."""

import contextlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import click

from tensortriage.cli.documents import print_document
from tensortriage.cli.options import parse_bytes
from tensortriage.cli.progress import StepTeller
from tensortriage.compare.tolerance import PolygraphyTolerance
from tensortriage.diagnose.verdict import Verdict
from tensortriage.engines.base import Limits
from tensortriage.engines.registry import availabilities
from tensortriage.errors import UsageError
from tensortriage.inputs.sweep import parse_sweep
from tensortriage.inputs.syntax import parse_named, parse_number, parse_ranges, parse_shapes
from tensortriage.report import console, json_
from tensortriage.report.document import Report
from tensortriage.workflows.diagnose import BATCH_BYTES, DiagnoseRequest
from tensortriage.workflows.diagnose import diagnose as run_diagnosis
from tensortriage.workflows.feeding import FeedRequest

LOW_MEMORY_BATCH_BYTES = 64 << 20
READY = {
    "onnxruntime": "onnxruntime",
    "openvino": "openvino:precision=bf16",
    "emulate": "emulate:precision=fp16",
    "tensorrt": "tensorrt:precision=fp16",
}
"""A useful spec of each engine, for the list of ready commands."""


def no_target(model: Path) -> UsageError:
    """Return the error for a missing --target, with a ready command for each engine usable here."""
    usable = [name for name, available in availabilities().items() if available.usable and name in READY]
    commands = "; ".join(f"triage diagnose {model} --target {READY[name]}" for name in usable)
    return UsageError("no --target: which engine is under suspicion?", slug="target-missing", cure=f"try {commands}")


def feed_request(given: dict[str, Any], *, most: int | None) -> FeedRequest:
    """Take the data options out of a command's options."""
    return FeedRequest(
        paths=tuple(given.pop("inputs")),
        script=given.pop("data_loader_script"),
        seed=given.pop("seed"),
        iterations=given.pop("iterations"),
        value_ranges=parse_ranges(given.pop("val_range")),
        shapes=parse_shapes(given.pop("input_shapes")),
        most=most,
    )


def limits_of(timeout: float | None, memory_limit: str) -> Limits:
    """Return limits from the options; the defaults where they are not given."""
    return Limits(timeout or Limits().build_seconds, timeout, parse_bytes(memory_limit))


def tolerance_of(given: Mapping[str, Any]) -> PolygraphyTolerance | None:
    """Return the tolerance that --atol and --rtol stand for; None without them (the noise floor judges)."""
    atol, rtol = parse_named(given["atol"], parse_number), parse_named(given["rtol"], parse_number)
    return PolygraphyTolerance(atol=atol, rtol=rtol) if atol or rtol else None


def request_of(model: Path, target: str, given: dict[str, Any]) -> DiagnoseRequest:
    """Return the request that a command line stands for."""
    return DiagnoseRequest(
        model=model,
        target=target,
        reference=given["reference"],
        target_model=given["target_model"],
        feeding=feed_request(given, most=given["samples"]),
        case=given["case"],
        tolerance=tolerance_of(given),
        limits=limits_of(given["timeout"], given["memory_limit"]),
        external_data_dir=given["external_data_dir"],
        batch_bytes=LOW_MEMORY_BATCH_BYTES if given["low_memory"] else BATCH_BYTES,
        budget_seconds=given["budget"],
        sweep=parse_sweep(given["sweep"]),
        repro=not given["no_repro"],
        fix=given["fix"],
        random_too=not given["no_random_data"],
        builds=given["builds"],
        emit_breakers=given["emit_breakers"],
    )


def breakers_line(verdict: Verdict, path: Path) -> str:
    """Return what became of ``--emit-breakers``."""
    if not verdict.breakers:
        return f"breakers: none found, {path} is not written"
    outputs = "output" if len(verdict.breakers) == 1 else "outputs"
    return f"breakers: {path} has {len(verdict.breakers)} more {outputs}, and gives right answers on every feed"


def diagnose_and_show(request: DiagnoseRequest, *, as_json: bool) -> NoReturn:
    """Run a diagnosis, tell it as it goes, show the verdict and exit with its code."""
    teller = StepTeller(err=as_json)
    click.echo(f"reference {request.reference}, target {request.target}, model {request.model}", err=as_json)
    with contextlib.closing(teller):
        verdict = run_diagnosis(request, listener=teller)
    report = Report.load(request.case)
    if as_json:
        print_document(json_.render(report))
    else:
        click.echo()
        console.show(report, sys.stdout, sections=("Culprits", "Outputs", "Shapes"))
        click.echo(f"report: {request.case / 'report.html'}")
    if request.emit_breakers is not None:
        click.echo(breakers_line(verdict, request.emit_breakers), err=as_json)
    sys.exit(verdict.kind.exit_code)

"""What ``diagnose`` and ``demo`` share: building the request, telling the progress, showing the verdict."""

import contextlib
import dataclasses
import sys
from pathlib import Path
from typing import NoReturn

import click

from tensortriage.cli.documents import print_document
from tensortriage.cli.option_values import DiagnoseValues
from tensortriage.cli.progress import StepTeller
from tensortriage.cli.requests import LOW_MEMORY_BATCH_BYTES, feed_request, limits_of, tolerance_of
from tensortriage.diagnose.state.verdict import Verdict
from tensortriage.engines.registry import availabilities
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import UsageError
from tensortriage.inputs.generated.size_sweep import parse_sweep
from tensortriage.report.document import Report
from tensortriage.report.formats import console, json_
from tensortriage.runs.capture import BATCH_BYTES
from tensortriage.values.printable import printable
from tensortriage.workflows.diagnosis.diagnose import DiagnoseRequest
from tensortriage.workflows.diagnosis.diagnose import diagnose as run_diagnosis
from tensortriage.workflows.diagnosis.export_network import export_network

READY = {
    "onnxruntime": "onnxruntime",
    "openvino": "openvino:precision=bf16",
    "emulate": "emulate:precision=fp16",
    "tensorrt": "tensorrt:precision=fp16",
}
"""A useful spec of each engine, for the list of ready commands."""


def no_target(model: Path, command: str = "diagnose") -> UsageError:
    """Return the error for a missing --target, with a ready command for each engine usable here."""
    usable = [name for name, available in availabilities().items() if available.usable and name in READY]
    commands = "; ".join(f"triage {command} {model} --target {READY[name]}" for name in usable)
    return UsageError("no --target: which engine is under suspicion?", slug="target-missing", cure=f"try {commands}")


def request_of(model: Path, target: str, given: DiagnoseValues) -> DiagnoseRequest:
    """Return the request that a command line stands for."""
    limits = limits_of(given["timeout"], given["memory_limit"])
    return DiagnoseRequest(
        model=model,
        target=target,
        reference=given["reference"],
        target_model=given["target_model"],
        feeding=feed_request(given, most=given["samples"], limits=limits),
        case=given["case"],
        tolerance=tolerance_of(given),
        limits=limits,
        external_data_dir=given["external_data_dir"],
        batch_bytes=LOW_MEMORY_BATCH_BYTES if given["low_memory"] else BATCH_BYTES,
        budget_seconds=given["budget"],
        sweep=parse_sweep(given["sweep"]),
        repro=not given["no_repro"],
        fix=given["fix"],
        random_too=not given["no_random_data"],
        builds=given["builds"],
        emit_breakers=given["emit_breakers"],
        against=given["against"],
        network=f"torch:{given['torch']}" if given["torch"] else "",
    )


def exported_first(request: DiagnoseRequest, exporter: str) -> DiagnoseRequest:
    """Return the request with the model that is exported from its network now, and, without feeds, its inputs."""
    click.echo(f"exporting {printable(request.network)} ({exporter})", err=True)
    network = EngineSpec.parse(request.network)
    path, inputs = export_network(network, request.case, exporter=exporter, limits=request.limits)
    feeding = request.feeding
    if not (feeding.paths or feeding.script):
        feeding = dataclasses.replace(feeding, paths=(str(inputs),))
    return dataclasses.replace(request, model=path, feeding=feeding)


def breakers_line(verdict: Verdict, path: Path) -> str:
    """Return what became of ``--emit-breakers``."""
    if not verdict.breakers:
        return f"breakers: none found, {path} is not written"
    outputs = "output" if len(verdict.breakers) == 1 else "outputs"
    return f"breakers: {path} has {len(verdict.breakers)} more {outputs}, and gives right answers on every feed"


def diagnose_and_show(request: DiagnoseRequest, *, as_json: bool) -> NoReturn:
    """Run a diagnosis, tell it as it goes, show the verdict and exit with its code."""
    teller = StepTeller(err=as_json)
    headline = f"reference {request.reference}, target {request.target}, model {request.model}"
    click.echo(printable(headline), err=as_json)
    with contextlib.closing(teller):
        verdict = run_diagnosis(request, listener=teller)
    report = Report.load(request.case)
    if as_json:
        print_document(json_.render(report))
    else:
        click.echo()
        console.show(report, sys.stdout, sections=("Culprits", "Outputs", "Shapes"))
        click.echo(f"report: {printable(str(request.case / 'report.html'))}")
    if request.emit_breakers is not None:
        click.echo(breakers_line(verdict, request.emit_breakers), err=as_json)
    sys.exit(verdict.kind.exit_code)

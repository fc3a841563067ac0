"""The common part of ``diagnose`` and ``demo``: progress lines and the verdict."""

import contextlib
import dataclasses
import sys
from pathlib import Path
from typing import NoReturn

import click

from tensortriage.cli.documents import print_document
from tensortriage.cli.progress import StepTeller
from tensortriage.diagnose.state.verdict import Verdict
from tensortriage.engines.spec import EngineSpec
from tensortriage.report.formats import console, json_
from tensortriage.values.printable import printable
from tensortriage.workflows.diagnosis.diagnose import diagnosed
from tensortriage.workflows.engines.source_network import export_network
from tensortriage.workflows.requests import DiagnoseRequest


def exported_first(request: DiagnoseRequest, exporter: str, *, real: bool) -> DiagnoseRequest:
    """Return the request with the model that is exported from its network now, and, without feeds, its inputs.

    Args:
        request: The request, whose network is exported.
        exporter: One of `EXPORTERS`.
        real: Whether the example inputs are real data; most are made up by ``torch.randn``.
    """
    click.echo(f"exporting {printable(request.network)} ({exporter})", err=True)
    network = EngineSpec.parse(request.network)
    path, inputs = export_network(network, request.case, exporter=exporter, limits=request.limits)
    feeding = request.feeding
    if not (feeding.paths or feeding.script):
        feeding = dataclasses.replace(feeding, paths=(str(inputs),), made_up=not real)
    return dataclasses.replace(request, model=path, feeding=feeding)


def breakers_line(verdict: Verdict, path: Path) -> str:
    """Return the outcome of ``--emit-breakers``."""
    if not verdict.breakers:
        return f"breakers: none found, {path} is not written"
    outputs = "output" if len(verdict.breakers) == 1 else "outputs"
    return f"breakers: {path} has {len(verdict.breakers)} more {outputs}, and gives right answers on every feed"


def diagnose_and_show(request: DiagnoseRequest, *, as_json: bool, began: float | None = None) -> NoReturn:
    """Run a diagnosis with progress lines, show the verdict and exit with its code.

    Args:
        request: The user's request.
        as_json: Whether a document is printed instead of text.
        began: As for `diagnosed`.
    """
    teller = StepTeller(err=as_json)
    headline = f"reference {request.reference}, target {request.target}, model {request.model}"
    click.echo(printable(headline), err=as_json)
    with contextlib.closing(teller):
        report = diagnosed(request, listener=teller, began=began)
    verdict = report.verdict
    if as_json:
        print_document(json_.render(report))
    else:
        click.echo()
        console.show(report, sys.stdout, sections=("Culprits", "Outputs", "Shapes"))
        click.echo(f"report: {printable(str(request.case / 'report.html'))}")
    if request.emit_breakers is not None:
        click.echo(breakers_line(verdict, request.emit_breakers), err=as_json)
    sys.exit(verdict.exit_code)

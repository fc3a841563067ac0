"""Looking into an engine without comparing anything: its plan for a model, and what of a model it can build."""

import dataclasses
from pathlib import Path

from tensortriage.engines.base import Limits
from tensortriage.engines.capabilities import AsksParser
from tensortriage.engines.registry import create, resolve
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import UsageError
from tensortriage.model.model import Model
from tensortriage.report.terminal.capability_text import capability_lines
from tensortriage.report.terminal.lines import plain
from tensortriage.runs.capabilities.capability import PIECE_FILE, Capability, Prober, Say, Support
from tensortriage.runs.capabilities.parser_support import ask_parser
from tensortriage.runs.capabilities.plan_audit import PlanAudit, audit
from tensortriage.runs.engine_specs import usable
from tensortriage.runs.lab import Lab
from tensortriage.values.files import write_text
from tensortriage.values.serial import dump
from tensortriage.workflows.requests import CapabilityRequest


def inspect_plan(
    path: Path, target: str, *, limits: Limits | None = None, external_data_dir: Path | None = None
) -> PlanAudit:
    """Build a model and return what the engine really runs for it, judged against what it was asked for.

    Args:
        path: ONNX file.
        target: Spec of the engine.
        limits: Time and memory limits of isolated engines.
        external_data_dir: Directory of the external data, if they do not lie beside the model.

    Raises:
        ModelError: When the file is no sound model.
        UsageError: For a malformed spec or unknown option, or when the engine cannot tell its plan (``plan-unknown``).
        EngineMissing: When the engine cannot be used here.
        EngineError: When it cannot build the model.
    """
    spec = usable(target, limits=limits)
    model = load(path, external_data_dir)
    with Lab(limits=limits) as lab:
        plan = lab.plan(spec, model)
    if plan is None:
        raise UsageError(
            f"engine '{spec.name}' cannot report what it runs for {path}",
            slug="plan-unknown",
            cure="inspect the plan of an engine that can: onnxruntime, openvino",
        )
    return dataclasses.replace(audit(plan, model, spec, resolve(spec).engine), model=str(path))


def inspect_capability(request: CapabilityRequest, say: Say = lambda text: None) -> Capability:
    """Find out what of a model an engine can build; an engine whose parser can tell is asked that alone.

    Args:
        request: What is asked.
        say: Told what is being built.

    Raises:
        ModelError: When the file is no sound model.
        UsageError: For a malformed spec, an unknown option, or an output that is a file (``output-not-a-directory``).
        EngineMissing: When the engine cannot be used here.
    """
    output, limits = request.output, request.limits
    if output is not None and output.exists() and not output.is_dir():
        raise UsageError(
            f"{output} is not a directory", slug="output-not-a-directory", cure="name a directory, or a new path"
        )
    spec = EngineSpec.parse(request.target)
    engine = create(spec, limits=limits)
    if not isinstance(engine, AsksParser):
        spec = usable(request.target, limits=limits)
    model = load(request.model, request.external_data_dir)
    with Lab(limits=limits, progress=say) as lab:
        prober = Prober(model, spec, lab)
        wanted = request.partition or output is not None
        if isinstance(engine, AsksParser):
            file = lab.workspace.file(model)
            found = ask_parser(engine, model, file, spec.options, target=str(spec), partition=wanted)
        else:
            found = prober.capability(partition=wanted)
        found = dataclasses.replace(found, model=str(request.model))
        if output is not None:
            _write_pieces(found, prober, output)
    return found


def _write_pieces(found: Capability, prober: Prober, output: Path) -> None:
    output.mkdir(parents=True, exist_ok=True)
    for old in output.iterdir():
        if PIECE_FILE.fullmatch(old.name):
            old.unlink()
    for piece in found.pieces:
        if piece.support is not Support.UNKNOWN:
            prober.cut(piece.nodes).save(output / piece.file_name)
    dump(found, output / "results.json")
    text = "\n".join(map(plain, capability_lines(found, folder=str(output))))
    write_text(output / "results.txt", text + "\n")


def load(path: Path, external_data_dir: Path | None) -> Model:
    """Load a model such that engines find its weights, wherever they are."""
    model = Model.load(path, external_data_dir=external_data_dir)
    return model if external_data_dir is None else Model.from_ir(model.ir)

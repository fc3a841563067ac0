"""Looking into an engine without comparing anything: its plan for a model."""

import dataclasses
from pathlib import Path

from tensortriage.engines.sdk import Limits, Model
from tensortriage.envelope.sdk import Lab, resolve
from tensortriage.sdk import PlanAudit, UsageError, audit, usable


def inspect_plan(
    path: Path, target: str, *, limits: Limits | None = None, external_data_dir: Path | None = None
) -> PlanAudit:
    """Build a model and return the engine's plan for it, judged against the request.

    Args:
        path: ONNX file.
        target: Spec of the engine.
        limits: Time and memory limits of isolated engines.
        external_data_dir: Directory of the external data, if they are not next to the model.

    Raises:
        ModelError: When the file is no sound model.
        UsageError: For a malformed spec or unknown option, or when the engine cannot report its plan
            (``plan-unknown``).
        EngineMissing: When the engine cannot be used here.
        EngineError: When it cannot build the model.
    """
    spec = usable(target, limits=limits)
    model = load(path, external_data_dir)
    with Lab(limits=limits) as lab:
        plan = lab.plan(spec, model)
    if plan is None:
        raise UsageError(
            f"engine '{spec.name}' cannot report its plan for {path}",
            slug="plan-unknown",
            cure="inspect the plan of an engine that can: onnxruntime, openvino",
        )
    return dataclasses.replace(audit(plan, model, spec, resolve(spec).engine), model=str(path))


def load(path: Path, external_data_dir: Path | None) -> Model:
    """Load a model such that engines find its weights, wherever they are."""
    model = Model.load(path, external_data_dir=external_data_dir)
    return model if external_data_dir is None else Model.from_ir(model.ir)

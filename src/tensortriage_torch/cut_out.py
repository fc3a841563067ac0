"""The PyTorch module behind a culprit: cut out of the network, and exported again to see whether it fails again.

An exporter's fault that shows again is the exporter's; one that does not was made after the export, or by another
version. An engine's fault that shows again needs nothing of the user's file.
"""

import dataclasses
import shutil
import tempfile
from collections.abc import Collection
from pathlib import Path

from tensortriage.diagnose.sdk import EngineError, EngineSpec, Evidence, Feed, Investigation, Model, TriageError
from tensortriage.sdk import Failure, ModuleBeside, Origin, Repro, ReproSample, failure_of, limit_of
from tensortriage_torch.cut_module import CutModule, part_of, part_until
from tensortriage_torch.engine import TorchEngine
from tensortriage_torch.export import EXPORTERS
from tensortriage_torch.module_files import MODULE, module_beside
from tensortriage_torch.rungs.network_values import asked_about
from tensortriage_worker.shards import ShardError


def cut_out(
    inv: Investigation, evidence: Evidence, nodes: Collection[str], local: Failure
) -> tuple[ModuleBeside | None, str]:
    """Return the module that some nodes were exported from, or why there is none.

    Args:
        inv: Investigation of a model with a network.
        evidence: The evidence, with the exporter's mistake, if any.
        nodes: Names of the nodes.
        local: How they fail in isolation.
    """
    network, part, graph = inv.question.network, evidence.wrong_part, inv.model.graph
    assert network is not None
    try:
        cut = _cut(inv, evidence, network, nodes)
    except EngineError as failure:
        return None, failure.message
    if isinstance(cut, str):
        return None, cut
    origins = [graph.origin(name) for name in nodes]
    label = part.label if part else ", ".join(dict.fromkeys(origin.label for origin in origins if origin.is_known))
    dynamo, legacy = EXPORTERS
    exporter = dynamo if any(graph.origin(node.name).fx_node for node in graph.nodes) else legacy
    module = module_beside(cut, label, exporter)
    try:
        anew, message = _tried(
            inv, cut, module, inv.question.reference if part else inv.question.target, local, exporter
        )
    except ShardError as error:
        return None, f"its tensors cannot be written: {error}"
    return dataclasses.replace(module, anew=anew, told=message), ""


def _cut(inv: Investigation, evidence: Evidence, network: EngineSpec, nodes: Collection[str]) -> CutModule | str:
    part, graph = evidence.wrong_part, inv.model.graph
    lab_network = asked_about(inv.lab, network, inv.model, part.feed if part else evidence.feed)
    trace = lab_network.trace()
    if part is not None:
        return lab_network.cut(part_until(trace, [part.value], part.values.keys()))
    origins = [graph.origin(name) for name in nodes]
    modules = dict.fromkeys(origin.module for origin in origins if origin.module)
    return lab_network.cut(part_of(trace, [origin.fx_node for origin in origins], modules))


def _tried(
    inv: Investigation, cut: CutModule, module: ModuleBeside, engine: EngineSpec, local: Failure, exporter: str
) -> tuple[bool | None, str]:
    """Return whether the module is wrong when it is exported again, None where it cannot be, and how or why.

    Raises:
        ShardError: When its tensors have no type in files.
    """
    network = inv.question.network
    assert network is not None
    folder = Path(tempfile.mkdtemp(prefix="module-", dir=inv.lab.workspace.folder))
    try:
        module.write(folder)
        limits = inv.lab.budget.within(inv.question.limits)
        options = {**network.options, "file": str(folder / MODULE), "attribute": "make"}
        TorchEngine(limits=limits).export_file(options, folder / "module.onnx", exporter=exporter)
        model = Model.load(folder / "module.onnx")
        inputs, outputs = tuple(cut.inputs.values()), tuple(cut.outputs.values())
        if (len(inputs), len(outputs)) != (len(model.inputs), len(model.outputs)):
            return None, "the exported module has other inputs or outputs"
        sample = ReproSample(
            {spec.name: array for spec, array in zip(model.inputs, inputs, strict=True)},
            {spec.name: array for spec, array in zip(model.outputs, outputs, strict=True)},
        )

        failure = failure_of(
            Repro(model, (sample,)), lambda fed: inv.lab.outputs(engine, model, Feed("module", fed, Origin.REAL))
        )
    except TriageError as error:
        return None, error.message
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    wrong = failure is not None and (not failure.kind.numeric or failure.error > limit_of(local))
    return wrong, failure.describe() if failure else ""

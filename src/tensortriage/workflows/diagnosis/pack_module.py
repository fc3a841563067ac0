"""The PyTorch module behind a culprit: cut out of the network, and exported anew to see whether it fails again.

An exporter's fault that shows again is the exporter's; one that does not was made after the export, or by another
version. An engine's fault that shows again needs nothing of the user's file.
"""

import dataclasses
import shutil
import tempfile
from collections.abc import Collection
from pathlib import Path

from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.rungs.premises.network_values import asked_about
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.engines.spec import EngineSpec
from tensortriage.engines.torch.cut_module import CutModule, part_of, part_until
from tensortriage.engines.torch.engine import TorchEngine
from tensortriage.errors import EngineError, TriageError
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.model.model import Model
from tensortriage.reduce.failure import Failure
from tensortriage.reduce.repro.packed_module import MODULE, PackedModule, write_module
from tensortriage.reduce.repro.repro_case import Repro, ReproSample, failure_of
from tensortriage.reduce.repro.repro_pack import limit_of
from tensortriage.workflows.diagnosis.export_network import EXPORTERS
from tensortriage_worker.shards import ShardError


def packed_module(
    inv: Investigation, evidence: Evidence, nodes: Collection[str], local: Failure
) -> tuple[PackedModule | None, str]:
    """Return the module that some nodes were exported from, or why there is none; both empty without a network.

    Args:
        inv: Where engines are asked.
        evidence: What the exporter made wrong, if it did.
        nodes: Names of the nodes.
        local: How they fail by themselves.
    """
    network = inv.question.network
    if network is None:
        return None, ""
    inv.progress("cutting the module out of the network")
    try:
        cut = _cut(inv, evidence, network, nodes)
    except EngineError as failure:
        return None, failure.message
    if isinstance(cut, str):
        return None, cut
    graph, part = inv.model.graph, evidence.wrong_part
    origins = [graph.origin(name) for name in nodes]
    label = part.label if part else ", ".join(dict.fromkeys(origin.label for origin in origins if origin.is_known))
    dynamo, legacy = EXPORTERS
    exporter = dynamo if any(graph.origin(node.name).fx_node for node in graph.nodes) else legacy
    packed = PackedModule(cut=cut, label=label, exporter=exporter)
    try:
        return _tried(inv, packed, network, inv.question.reference if part else inv.question.target, local), ""
    except ShardError as error:
        return None, f"its tensors cannot be written: {error}"


def _cut(inv: Investigation, evidence: Evidence, network: EngineSpec, nodes: Collection[str]) -> CutModule | str:
    part, graph = evidence.wrong_part, inv.model.graph
    asked = asked_about(inv.lab, network, inv.model, part.feed if part else evidence.feed)
    trace = asked.trace()
    if part is not None:
        return asked.cut(part_until(trace, [part.value], part.values.keys()))
    origins = [graph.origin(name) for name in nodes]
    modules = dict.fromkeys(origin.module for origin in origins if origin.module)
    return asked.cut(part_of(trace, [origin.fx_node for origin in origins], modules))


def _tried(
    inv: Investigation, packed: PackedModule, network: EngineSpec, engine: EngineSpec, local: Failure
) -> PackedModule:
    """Return the module with what exporting it anew gave.

    Raises:
        ShardError: When its tensors have no type in files.
    """
    folder = Path(tempfile.mkdtemp(prefix="module-", dir=inv.lab.workspace.folder))
    try:
        write_module(folder, packed)
        limits = inv.lab.budget.within(inv.question.limits)
        options = {**network.options, "file": str(folder / MODULE), "attribute": "make"}
        TorchEngine(limits=limits).export(options, folder / "module.onnx", exporter=packed.exporter)
        model = Model.load(folder / "module.onnx")
        inputs, outputs = tuple(packed.cut.inputs.values()), tuple(packed.cut.outputs.values())
        if (len(inputs), len(outputs)) != (len(model.inputs), len(model.outputs)):
            return dataclasses.replace(packed, told="the exported module has other inputs or outputs")
        sample = ReproSample(
            {spec.name: array for spec, array in zip(model.inputs, inputs, strict=True)},
            {spec.name: array for spec, array in zip(model.outputs, outputs, strict=True)},
        )
        failure = failure_of(
            Repro(model, (sample,)), lambda fed: inv.lab.outputs(engine, model, Feed("module", fed, Origin.REAL))
        )
    except TriageError as error:
        return dataclasses.replace(packed, told=error.message)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    wrong = failure is not None and (not failure.kind.numeric or failure.error > limit_of(local))
    return dataclasses.replace(packed, anew=wrong, told=failure.describe() if failure else "")

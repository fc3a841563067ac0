"""Inserting a node changes what a model computes, so the proof is that it runs and that what it cannot reach stays."""

import dataclasses

from tensortriage.api import Source, Target
from tensortriage.model.sdk import NewNode, insert_node, is_custom, with_inferred_shapes
from tensortriage.sdk import EditStage, Proof, ProofRequest, SurgeryResult, Verify, model_to_edit, prove, written


def insert(source: Source, target: Target, new: NewNode, *, infer_shapes: bool, request: ProofRequest) -> SurgeryResult:
    """Insert one node, prove that the result runs and that outputs which do not depend on the node stay, write it.

    Raises:
        UsageError: When the node makes no sense; see `tensortriage.model.transforms.insert_node.insert_node`.
        TriageError: For whatever else is wrong; nothing is written then.
    """
    model = model_to_edit(source, target)
    stages = [EditStage("load", model), EditStage("insert", insert_node(model, new))]
    if infer_shapes:
        stages.append(EditStage("shape-inference", with_inferred_shapes(stages[-1].model)))
    result = stages[-1].model
    if is_custom(new.domain, new.op_type) and request.verify is Verify.AUTO:
        proof = Proof(False, f"ONNX has no operator {new.op_type}: it is taken as one of a plugin")
    else:
        before = {node.name for node in model.graph.nodes}
        made = [value for node in result.graph.nodes if node.name not in before for value in node.outputs]
        reached = {value for node in result.graph.descendants(made) for value in node.outputs} | set(made)
        still = tuple(spec.name for spec in model.outputs if spec.name not in reached)
        proof = prove(stages, dataclasses.replace(request, outputs=still))
    return written("surgeon insert", source, target, stages, proof)

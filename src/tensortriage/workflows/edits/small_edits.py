"""The smaller edits: insert a node, prune weights to 2:4 sparsity, strip weights and make up others.

They change what a model computes on purpose, so the proof is that the result runs and that what the edit cannot reach
did not move.
"""

import dataclasses
from pathlib import Path

from tensortriage.errors import DataError
from tensortriage.model.inspect.sparsity import prune as prune_weights
from tensortriage.model.shape_inference.annotate import with_inferred_shapes
from tensortriage.model.transforms.insert_node import NewNode, insert_node, is_custom
from tensortriage.model.transforms.strip_weights import reconstruct_weights, strip_weights
from tensortriage.values.files import read_regular
from tensortriage.values.text import count
from tensortriage.workflows.edits.edit_pipeline import SurgeryResult, load, written
from tensortriage.workflows.edits.requests import ProofRequest, Source, Target, Verify
from tensortriage.workflows.edits.verify_edit import EditStage, Proof, prove


def insert(source: Source, target: Target, new: NewNode, *, infer_shapes: bool, request: ProofRequest) -> SurgeryResult:
    """Insert one node, prove that the result runs and that outputs which do not depend on the node stay, write it.

    Raises:
        UsageError: When the node makes no sense; see `tensortriage.model.transforms.insert_node.insert_node`.
        TriageError: For whatever else is wrong; nothing is written then.
    """
    model = load(source, target)
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


def prune(source: Source, target: Target, *, request: ProofRequest) -> SurgeryResult:
    """Make every weight 2:4 sparse that can be, prove that the result runs, write it.

    Raises:
        DataError: When no weight can be (slug ``nothing-to-prune``).
        TriageError: For whatever else is wrong; nothing is written then.
    """
    model = load(source, target)
    pruned, candidates = prune_weights(model)
    if not candidates:
        raise DataError(
            f"{source.path} has no weight that could be 2:4 sparse", slug="nothing-to-prune",
            cure="only floating-point constants of Conv, Gemm and MatMul can be, if the length of the summed axis is "
                 "a multiple of four; fold constants first",
        )  # fmt: skip
    stages = [EditStage("load", model), EditStage("prune", pruned)]
    proof = prove(stages, dataclasses.replace(request, outputs=()))
    notice = f"pruned {count(len(candidates), 'weight')}; accuracy is lost"
    return written("surgeon prune", source, target, stages, proof, notice)


def weight_strip(
    source: Source, target: Target, *, exclude_list: Path | None, needs_weights: bool = True
) -> SurgeryResult:
    """Take the numbers of the weights out of a model and write it.

    Args:
        source: What to read.
        target: What to write.
        exclude_list: Text file with one initializer per line that is left alone.
        needs_weights: Whether a model with nothing to strip is an error; else it is written as it is.

    Raises:
        TriageError: For whatever is wrong; nothing is written then.
    """
    exclude = _lines(exclude_list) if exclude_list is not None else ()
    model = load(source, target)
    stripped, names = strip_weights(model, exclude=exclude, needs_weights=needs_weights)
    stages = [EditStage("load", model), EditStage("weight-strip", stripped)]
    proof = Proof(False, "a model without weights cannot run")
    return written("surgeon weight-strip", source, target, stages, proof, f"stripped {count(len(names), 'weight')}")


def weight_reconstruct(
    source: Source, target: Target, *, seed: int, request: ProofRequest, needs_weights: bool = True
) -> SurgeryResult:
    """Make up numbers for the weights that were stripped, prove that the result runs, write it.

    Args:
        source: What to read.
        target: What to write.
        seed: The same seed gives the same numbers.
        request: How the proof is made.
        needs_weights: Whether a model that was not stripped is an error; else it is written as it is.

    Raises:
        TriageError: For whatever is wrong; nothing is written then.
    """
    model = load(source, target)
    filled, names = reconstruct_weights(model, seed=seed, needs_weights=needs_weights)
    proof = prove(
        [EditStage("load", filled), EditStage("weight-reconstruct", filled)], dataclasses.replace(request, outputs=())
    )
    stages = [EditStage("load", model), EditStage("weight-reconstruct", filled)]
    notice = f"made up {count(len(names), 'weight')}"
    return written("surgeon weight-reconstruct", source, target, stages, proof, notice)


def _lines(path: Path) -> tuple[str, ...]:
    try:
        text = read_regular(path).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"{path} cannot be read: {error}",
            slug="exclude-list-unreadable",
            cure="give a text file, one name per line",
        ) from error
    return tuple(line.strip() for line in text.splitlines() if line.strip())

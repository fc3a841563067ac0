"""Common parts of all edits of a model: load, apply passes one after another, prove, write, report."""

from collections.abc import Callable, Iterator, Sequence

from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.io.external_data import weight_files
from tensortriage.model.io.lazy_weights import absent_weights
from tensortriage.model.io.save import EMBED_LIMIT_BYTES
from tensortriage.model.io.serialize import TRAINING
from tensortriage.model.model import ExternalData, Model
from tensortriage.values.output_files import check_output
from tensortriage.workflows.edits.requests import ProofRequest, Source, Target
from tensortriage.workflows.edits.verify_edit import EditStage, Proof, prove, weight_bytes

Pass = tuple[str, Callable[[Model], Model]]
"""Name of a pass, and the pass."""


def model_to_edit(source: Source, target: Target) -> Model:
    """Load the model to edit.

    Raises:
        UsageError: When the target cannot be written, or is a file that the model consists of; see `check_output`.
        ModelError: When the model cannot be loaded.
    """
    model = source.load()
    inputs = {source.path, *weight_files(model.ir, source.external_data_dir or source.path.parent)}
    path, data = target.paths
    check_output(path, *inputs)
    for one in inputs:
        if data.resolve() in (one.resolve(), *one.resolve().parents):
            check_output(one, one)
    return model


@frozen_dataclass
class PassReport:
    """The effect of one pass.

    Attributes:
        name: Name of the pass.
        nodes: Number of nodes of the main graph after it.
        weight_bytes: Size of its initializers after it, in bytes.
        changed: Whether nodes or weights became more or fewer.
    """

    name: str
    nodes: int
    weight_bytes: int
    changed: bool


@frozen_dataclass
class SurgeryResult:
    """The result of editing a model.

    Attributes:
        command: The command that did it, e.g. ``surgeon sanitize``.
        model: The file that was read.
        output: The file that was written.
        nodes_before: Number of nodes of the main graph that was read.
        weight_bytes_before: Size of its initializers in bytes.
        passes: One entry per pass, in order.
        proof: The proof.
        files: Further files that were written.
        notices: Further notices to the user.
    """

    command: str
    model: str
    output: str
    nodes_before: int
    weight_bytes_before: int
    passes: tuple[PassReport, ...]
    proof: Proof
    files: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    format: str = "tensortriage.surgery/1"


def apply_passes(model: Model, passes: Sequence[Pass]) -> list[EditStage]:
    """Return the model as it was and as each pass left it."""
    stages = [EditStage("load", model)]
    for name, change in passes:
        stages.append(EditStage(name, change(stages[-1].model)))
    return stages


def operate(
    command: str,
    source: Source,
    target: Target,
    passes: Callable[[Model], Sequence[Pass]],
    request: ProofRequest,
) -> SurgeryResult:
    """Load a model, apply passes, prove the result and write it; nothing is written when that fails.

    Args:
        command: Name of the command, for the result.
        source: The file to read.
        target: The file to write.
        passes: Decides on the passes from the model that was loaded.
        request: How to prove the edit.

    Raises:
        TriageError: For whatever is wrong; see `tensortriage.workflows.edits.verify_edit.prove` for a failing proof.
    """
    model = model_to_edit(source, target)
    stages = apply_passes(model, passes(model))
    return written(command, source, target, stages, prove(stages, request))


def written(
    command: str, source: Source, target: Target, stages: Sequence[EditStage], proof: Proof, *notices: str
) -> SurgeryResult:
    """Write the last stage, and return the result that stages and their proof amount to."""
    target.write(stages[-1].model)
    sizes = [(len(stage.model.ir.graph), weight_bytes(stage.model)) for stage in stages]
    return SurgeryResult(
        command=command,
        model=str(source.path),
        output=str(target.path),
        nodes_before=sizes[0][0],
        weight_bytes_before=sizes[0][1],
        passes=tuple(
            PassReport(stage.name, *size, changed=size != before)
            for stage, size, before in zip(stages[1:], sizes[1:], sizes, strict=False)
        ),
        proof=proof,
        notices=(*_notices(source, target, stages), *notices),
    )


def _notices(source: Source, target: Target, stages: Sequence[EditStage]) -> Iterator[str]:
    """Return notes on surprising properties of the written file."""
    before, after = stages[0].model.ir, stages[-1].model.ir
    if absent_weights(after) and source.path.resolve().parent != target.path.resolve().parent:
        yield f"{target.path} refers to external data by their names in {source.path}; they have to be next to it"
    if target.external_data is ExternalData.AUTO and weight_bytes(stages[-1].model) > EMBED_LIMIT_BYTES:
        yield f"weights beyond 1.5 GiB do not fit into a model file; they are in {target.path.name}.data next to it"
    if TRAINING in before.graph.meta and TRAINING not in after.graph.meta:
        yield "the training information applies only to the whole model, and was left out"

"""``triage surgeon insert``: put one node into a model."""

import ast
import dataclasses
from typing import TYPE_CHECKING, Any

from tensortriage.api import Source, Target
from tensortriage.sdk import (
    FILES,
    SHAPES,
    ProofRequest,
    UsageError,
    command,
    dialect,
    infer_field,
    model_type_option,
    option,
    own_inference,
    part,
    request,
)

if TYPE_CHECKING:
    from tensortriage.model.sdk import NewNode

EPILOG = """\b
Examples:
  triage surgeon insert model.onnx --op Clip --inputs hidden --outputs hidden -o clipped.onnx
  triage surgeon insert model.onnx --op Softmax --attrs axis=1 --inputs scores --outputs probs -o model2.onnx
  triage surgeon insert model.onnx --op mydomain::FusedBlock --inputs a b --outputs c --name block -o fused.onnx
"""


@request
class NodeOptions:
    """The node to insert."""

    # fmt: off
    op: str = option("--op", "[DOMAIN::]OP", "Operator.", group="The node")
    inputs: tuple[str, ...] = option("--inputs", "NAME...", "Values that the node takes, in order.")
    outputs: tuple[str, ...] = option(
        "--outputs", "NAME...", "Values that the node produces from now on, in order. If one of --inputs is among "
        "them, the node is put behind that value.")
    name: str = option("--name", "NAME", "Name of the node.", default="")
    attributes: tuple[str, ...] = option(
        "--attrs", "NAME=VALUE...", "Attributes: 1 is an int, 1.0 a float, '1' or text a string, [0,1] a list.",
        default=())
    # fmt: on

    def value(self) -> "NewNode":
        """Return the node."""
        from tensortriage.model.sdk import NewNode

        domain, _, op_type = self.op.rpartition("::")
        return NewNode(op_type=op_type, domain=domain, inputs=self.inputs, outputs=self.outputs, name=self.name,
                       attributes=dict(map(attribute, self.attributes)))  # fmt: skip


@command(epilog=EPILOG, accepted=[own_inference(SHAPES), model_type_option(FILES)])
def insert(
    *,
    node: "NewNode" = part(factory=NodeOptions),
    infer_shapes: bool = infer_field(),
    source: Source,
    target: Target,
    proof: ProofRequest,
    as_json: bool,
) -> None:
    """Insert one node into MODEL between existing values; nodes between them that become unused are removed.

    The result must run, and outputs that do not depend on the node must not move.
    """
    from tensortriage.sdk import show_edit
    from tensortriage_surgeon import insert as insertion

    if named := dialect().inserted:
        node = dataclasses.replace(node, renamed=named)
    show_edit(insertion.insert(source, target, node, infer_shapes=infer_shapes, request=proof), as_json=as_json)


def attribute(word: str) -> tuple[str, Any]:
    """Return name and value of ``NAME=VALUE``: an int, a float, a string, or a list of one of them.

    Raises:
        UsageError: For another form (slug ``attribute-malformed``).
    """
    name, equals, text = word.partition("=")
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        value = text
    value = list(value) if isinstance(value, tuple) else value
    kinds = {type(item) for item in value} if isinstance(value, list) else {type(value)}
    if kinds == {int, float}:
        value, kinds = [float(item) for item in value], {float}
    if not name or not equals or not text or len(kinds) != 1 or not kinds <= {int, float, str}:
        raise UsageError(
            f"'{word}' is not an attribute",
            slug="attribute-malformed",
            cure="write NAME=VALUE: axis=1, alpha=0.5, mode=linear or axes=[0,1]",
        )
    return name, value

"""The request of a conversion, each field with its option; light to import, since help needs it."""

from typing import TYPE_CHECKING

from tensortriage.runs.feeds.feed_request import shapes_field
from tensortriage.values.options import flag, option, part, request
from tensortriage.workflows.edits.requests import (
    FEED_NAMES,
    FORMAT,
    NODES,
    OUTPUTS,
    SHAPES,
    LayoutOptions,
    ProofRequest,
    Source,
    Target,
    feeding_field,
    infer_field,
    outputs_field,
)

if TYPE_CHECKING:
    from tensortriage.model.cutting.node_selection import NodeChoice
    from tensortriage.values.dtype import Precision
    from tensortriage.workflows.common.output_selection import OutputChoice


@request
class ConvertRequest:
    """A request to convert a model.

    Attributes:
        source: The model.
        target: The file to write.
        kept: Nodes that stay float32.
        proof: How to prove the result.
        precision: Number format; None to leave it.
    """

    # fmt: off
    kept: "NodeChoice" = part(
        factory=NODES, group=FORMAT,
        names=option("--keep-nodes", "NAME...", "Nodes that stay fp32: names and patterns of nodes or modules.",
                     default=()),
        op_types=option("--keep-op-types", "OP...", "Op types that stay fp32.", default=()),
        scopes=option("--keep-scopes", "MODULE...", "Modules of the network that stay fp32, e.g. encoder.layer.3.",
                      default=()))
    keep_io_types: bool = flag(
        "--convert-io-types", "Inputs and outputs get the format too  [default: they stay fp32].", default=True)
    opset: int | None = option("--opset", "N", "Raise the opset of the model.", default=None, least=1)
    outputs: "OutputChoice" = outputs_field("onnx-", rare=True, group=OUTPUTS)
    infer_shapes: bool = infer_field()
    source: Source = part(factory=Source)
    target: Target = part(factory=Target, external_data=part(factory=LayoutOptions, embed=flag(
        "--embed-weights", "Move the weights of external data files into the model file.", group=FORMAT)))
    proof: ProofRequest = part(factory=ProofRequest, feeding=feeding_field(
        f"--inputs {FEED_NAMES}", shapes=shapes_field(group=SHAPES)))
    # fmt: on
    precision: "Precision | None" = None

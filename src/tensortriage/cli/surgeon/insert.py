"""``triage surgeon insert``: put one node into a model."""

import ast
from pathlib import Path
from typing import Any, Unpack

import click

from tensortriage.cli.options import READ, GuideCommand, common, option
from tensortriage.cli.surgeon.edit_values import InsertValues
from tensortriage.cli.surgeon.options import (
    FEED_LISTS,
    INFER_SHAPES,
    OWN_INFERENCE,
    feed_option,
    feeding_of,
    file_options,
    layout_of,
    proof_options,
    source_of,
    verify_of,
)
from tensortriage.errors import UsageError

EPILOG = """\b
Examples:
  triage surgeon insert model.onnx --op Clip --inputs hidden --outputs hidden -o clipped.onnx
  triage surgeon insert model.onnx --op Softmax --attrs axis=1 --inputs scores --outputs probs -o model2.onnx
  triage surgeon insert model.onnx --op mydomain::FusedBlock --inputs a b --outputs c --name block -o fused.onnx
"""
NODE = "The node"
LISTS = (*FEED_LISTS, "--inputs", "--outputs", "--attrs")


@click.command(cls=GuideCommand, value_lists=LISTS, epilog=EPILOG)
@click.argument("model", type=READ)
@option("--op", required=True, metavar="[DOMAIN::]OP", heading=NODE, help="Operator.")
@option(
    "--inputs",
    multiple=True,
    required=True,
    metavar="NAME...",
    heading=NODE,
    help="Values that the node takes, in order.",
)
@option("--outputs", multiple=True, required=True, metavar="NAME...", heading=NODE,
        help="Values that the node produces from now on, in order. If one of --inputs is among them, the "
             "node is put behind that value.")  # fmt: skip
@option("--name", default="", metavar="NAME", heading=NODE, help="Name of the node.")
@option("--attrs", multiple=True, metavar="NAME=VALUE...", heading=NODE,
        help="Attributes: 1 is an int, 1.0 a float, '1' or text a string, [0,1] a list.")  # fmt: skip
@INFER_SHAPES
@OWN_INFERENCE
@file_options
@proof_options
@feed_option()
@common
def insert(model: Path, as_json: bool, **given: Unpack[InsertValues]) -> None:
    """Insert one node into MODEL between existing values; nodes between them that become unused are removed.

    The result must run, and outputs that do not depend on the node must not move.
    """
    from tensortriage.cli.surgeon.show import show
    from tensortriage.model.model import ExternalData
    from tensortriage.model.transforms.insert_node import NewNode
    from tensortriage.workflows.edits import small_edits
    from tensortriage.workflows.edits.edit_pipeline import Target
    from tensortriage.workflows.edits.verify_edit import ProofRequest

    domain, _, op_type = given["op"].rpartition("::")
    result = small_edits.insert(
        source_of(model, given),
        Target(given["output"], layout_of(given, ExternalData.LEAVE)),
        NewNode(
            op_type=op_type,
            domain=domain,
            inputs=given["inputs"],
            outputs=given["outputs"],
            name=given["name"],
            attributes=dict(map(attribute, given["attrs"])),
        ),
        infer_shapes=given["infer_shapes"],
        request=ProofRequest(verify=verify_of(given["verify"]), feeding=feeding_of(given, given["feeds"])),
    )
    show(result, as_json=as_json)


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

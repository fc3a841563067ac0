"""``triage surgeon extract``: cut a part out of a model, with the data that lead to it if wanted."""

from pathlib import Path
from typing import Any, Unpack

import click

from tensortriage.cli.options import READ, GuideCommand, common, option, shapes_option, together
from tensortriage.cli.surgeon.edit_values import ExtractValues
from tensortriage.cli.surgeon.options import (
    FEED_LISTS,
    OWN_INFERENCE,
    SHAPES,
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
  triage surgeon extract model.onnx --inputs hidden:auto:auto --outputs logits:auto -o head.onnx
  triage surgeon extract model.onnx --scope encoder.layer.3 -o layer3.onnx
  triage surgeon extract model.onnx --nodes '/norm/*' --with-inputs real.npz -o norm/model.onnx
  triage surgeon extract model.onnx --node-range conv1 relu4 -o front.onnx
  triage surgeon extract model.onnx --body loop -o turn.onnx
"""
CUT = "What to cut out"
LISTS = (
    *FEED_LISTS, "--inputs", "--outputs", "--nodes", "--op-types", "--scope", "--with-inputs", "--model-input-shapes",
    "--model-inputs",
)  # fmt: skip


options = together(
    option(
        "--inputs",
        multiple=True,
        metavar="NAME:SHAPE:TYPE...",
        heading=CUT,
        help="Values at which the cut starts, e.g. x:[1,3]:float32 or x:auto:auto  [default: the inputs].",
    ),
    option(
        "--outputs",
        multiple=True,
        metavar="NAME:TYPE...",
        heading=CUT,
        help="Values at which the cut ends, e.g. y:float32 or y:auto  [default: the outputs].",
    ),
    option("--nodes", multiple=True, metavar="NAME...", heading=CUT, help="Nodes to cut out: names and patterns."),
    option(
        "--node-range",
        "ranges",
        nargs=2,
        multiple=True,
        metavar="FIRST LAST",
        heading=CUT,
        help="Nodes from FIRST to LAST in topological order: names or positions.",
    ),
    option("--op-types", multiple=True, metavar="OP...", heading=CUT, help="Every node of these op types."),
    option(
        "--scope",
        "scopes",
        multiple=True,
        metavar="MODULE...",
        heading=CUT,
        help="Every node of a module of the network, e.g. encoder.layer.3 or encoder.layer.*.mlp.",
    ),
    option(
        "--body",
        default="",
        metavar="NODE[:BRANCH]",
        heading=CUT,
        help="Cut inside the body of this If, Loop or Scan; alone: the whole body.",
    ),
    option(
        "--with-inputs",
        multiple=True,
        metavar="PATH...",
        heading=CUT,
        help="Run MODEL on these feeds ('random' for random ones), and write the inputs and the expected outputs of "
        "the cut as test_data_set_0 beside it.",
    ),
    shapes_option("--model-input-shapes", "--model-inputs", heading=SHAPES, rare=True),
    option(
        "--shape-inference",
        "--do-shape-inference",
        "infer_shapes",
        is_flag=True,
        heading=SHAPES,
        rare=True,
        help="Infer shapes even where types and ranks are declared.",
    ),
    option(
        "--no-shape-inference",
        "not_inferred",
        is_flag=True,
        expose_value=False,
        hidden=True,
        heading=SHAPES,
        rare=True,
    ),
    option(
        "--force-fallback-shape-inference",
        "run_for_shapes",
        is_flag=True,
        heading=SHAPES,
        rare=True,
        help="Take types and shapes from a run of the model; all become static.",
    ),
    OWN_INFERENCE,
)
"""The options of ``surgeon extract``."""


@click.command(cls=GuideCommand, value_lists=LISTS, epilog=EPILOG)
@click.argument("model", type=READ)
@options
@file_options
@proof_options
@feed_option()
@common
def extract(model: Path, as_json: bool, **given: Unpack[ExtractValues]) -> None:
    """Write a part of MODEL as a model of its own: between values, or chosen nodes, or the body of a loop.

    Types come from the model, from shape inference or from a run. A branch that enters the cut from elsewhere is an
    error that names it. The cut is run against MODEL before it is written.
    """
    from tensortriage.cli.surgeon.show import show
    from tensortriage.inputs.syntax import parse_metadata
    from tensortriage.model.cutting.node_selection import NodeChoice
    from tensortriage.model.model import ExternalData
    from tensortriage.workflows.edits.edit_pipeline import Target
    from tensortriage.workflows.edits.extract import ExtractRequest, extract

    keep_data = bool(given["with_inputs"])
    if keep_data and given["feeds"]:
        raise click.UsageError("--with-inputs and --load-inputs both name the feeds; give one of them")
    paths = () if given["with_inputs"] == ("random",) else given["with_inputs"] or given["feeds"]
    result = extract(
        ExtractRequest(
            source=source_of(model, given),
            target=Target(given["output"], layout_of(given, ExternalData.AUTO)),
            nodes=NodeChoice(
                names=given["nodes"], ranges=given["ranges"], op_types=given["op_types"], scopes=given["scopes"]
            ),
            inputs=parse_metadata(given["inputs"]) if given["inputs"] else None,
            outputs=dict(map(output, given["outputs"])) if given["outputs"] else None,
            body=given["body"],
            infer_shapes=given["infer_shapes"],
            run_for_shapes=given["run_for_shapes"],
            feeding=feeding_of(given, paths, shapes=given["input_shapes"]),
            keep_data=keep_data,
            verify=verify_of(given["verify"]),
        )
    )
    show(result, as_json=as_json)


def output(word: str) -> tuple[str, Any]:
    """Return name and type of ``NAME:TYPE``; None for ``auto``.

    Raises:
        UsageError: For a word without a type (slug ``output-malformed``) or an unknown type (``dtype-unknown``).
    """
    from tensortriage.inputs.syntax import split_name
    from tensortriage.values.dtype import DType

    name, dtype = split_name(word)
    if not name or not dtype:
        raise UsageError(
            f"'{word}' lacks a name or a type",
            slug="output-malformed",
            cure=f"write {word.rstrip(':') or 'NAME'}:auto",
        )
    return name, None if dtype.lower() == "auto" else DType.parse(dtype)

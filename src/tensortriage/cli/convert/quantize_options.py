"""``triage convert`` to 8 bits: its options, and how the result is shown."""

import collections
import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tensortriage.cli.documents import print_document
from tensortriage.cli.options import option
from tensortriage.cli.progress import Teller
from tensortriage.cli.surgeon.edit_values import ConvertValues
from tensortriage.cli.surgeon.options import layout_of, source_of, verify_of
from tensortriage.errors import UsageError
from tensortriage.values.printable import printable

if TYPE_CHECKING:
    from tensortriage.runs.feeds.feed_request import FeedRequest
    from tensortriage.values.dtype import Precision
    from tensortriage.workflows.quantization.quantize import QuantizeResult

F = TypeVar("F", bound=Callable[..., Any])
HEADING = "8 bits"
LISTS = ("--holdout",)
WORDS = ("auto", "minmax", "percentile", "entropy", "modelopt", "modelopt-max")
MOST_SHOWN, MOST_NAMED = 5, 3
EIGHT_BITS_ONLY = (
    "metric_script", "metric_min", "sqnr", "holdout", "float_weights", "per_tensor", "modelopt_python", "reduce_range",
)  # fmt: skip
ONNX_ONLY = ("mark", "exclude", "by_type", "opset", "infer_shapes", "convert_io_types")


def quantize_options(function: F) -> F:
    """Add the options of a conversion to int8 or fp8."""
    for add in (
        option("--metric-script", default="", metavar="FILE.py[:FUNCTION]", heading=HEADING,
               help="Task metric of outputs and feed, larger is better; the calibration with the best metric is "
                    "taken."),
        option("--metric-min", type=float, metavar="X", heading=HEADING,
               help="Smallest mean of the metric; the fewest nodes that prevent it stay float."),
        option("--sqnr", type=float, metavar="DB", heading=HEADING,
               help="Signal-to-noise ratio that every output must reach, in dB; the fewest nodes that prevent it "
                    "stay float."),
        option("--holdout", multiple=True, metavar="PATH...", heading=HEADING,
               help="Samples by which the calibrations are judged  [default: every fourth of --inputs]."),
        option("--float-weights", is_flag=True, heading=HEADING, rare=True,
               help="Keep weights in float behind a Q/DQ pair  [default: stored in 8 bits]."),
        option("--per-tensor", is_flag=True, heading=HEADING, rare=True,
               help="Use one scale per weight  [default: one per output channel]."),
        option("--reduce-range", is_flag=True, heading=HEADING,
               help="Quantize int8 weights to 7 bits, for x86 processors without VNNI, on which sums of 8-bit "
                    "products overflow."),
        option("--percentile", type=click.FloatRange(50.0, 100.0), default=99.99, show_default=True, metavar="P",
               heading=HEADING, rare=True, help="Share of the values, in percent, that a percentile range covers."),
        option("--modelopt-python", default="", metavar="PYTHON", heading=HEADING, rare=True,
               help="A Python interpreter with TensorRT-Model-Optimizer  [default: this one, if it is installed "
                    "here]."),
        option("--calibrate", type=click.Choice(WORDS), default="auto", show_default=True, heading=HEADING,
               help="How ranges are calibrated; modelopt is TensorRT-Model-Optimizer, and auto tries every installed "
                    "way and takes the best."),
    ):  # fmt: skip
        function = add(function)
    return function


def check_options(given: ConvertValues, precision: "Precision | None") -> None:
    """Refuse options that ask something of 8-bit numbers when there are to be none.

    Raises:
        UsageError: When one is given without such a format (``option-needs-another``).
    """
    from tensortriage.values.dtype import Precision

    values: Mapping[str, object] = given
    asked = next((name for name in EIGHT_BITS_ONLY if values[name] not in (None, "", (), False)), None)
    if asked is not None and precision not in (Precision.INT8, Precision.FP8E4M3):
        flag = f"--{asked.replace('_', '-')}"
        raise UsageError(f"{flag} without --int8 or --fp8", slug="option-needs-another", cure=f"add --int8 to {flag}")


def _refuse_what_cannot_be(given: ConvertValues, precision: "Precision") -> None:
    """Refuse options that say nothing of what was asked for.

    Raises:
        click.UsageError: When two contradict each other.
        UsageError: When one means nothing without another.
    """
    from tensortriage.values.dtype import Precision

    values: Mapping[str, object] = given
    if any(values[name] for name in ONNX_ONLY):
        raise UsageError(
            "a conversion to 8 bits changes formats and nothing else", slug="quantize-not-edited",
            cure="edit the model first: triage convert MODEL -o edited.onnx",
        )  # fmt: skip
    if given["metric_min"] is not None and not given["metric_script"]:
        raise UsageError(
            "--metric-min without --metric-script", slug="option-needs-another", cure="name the metric: --metric-script"
        )
    if given["reduce_range"] and precision is not Precision.INT8:
        raise click.UsageError(f"--reduce-range is for int8, and {precision.value} is asked for")
    if given["per_tensor"] and given["calibrate"].startswith("modelopt"):
        raise click.UsageError(
            "--per-tensor and --calibrate modelopt contradict each other: its scales are per channel"
        )


def quantize_and_show(
    model: Path, given: ConvertValues, precision: "Precision", feeding: "FeedRequest", *, as_json: bool
) -> None:
    """Quantize a model and say what it costs."""
    from tensortriage.cli.requests import metric_of
    from tensortriage.engines.base import Limits
    from tensortriage.model.cutting.node_selection import NodeChoice
    from tensortriage.model.model import ExternalData
    from tensortriage.precision.quantization.calibrated_model import QuantizeOptions
    from tensortriage.precision.quantization.calibration_search import usable_ways
    from tensortriage.runs.feeds.feed_request import FeedRequest
    from tensortriage.values.serial import to_json
    from tensortriage.workflows.edits.edit_pipeline import Target
    from tensortriage.workflows.edits.verify_edit import Verify
    from tensortriage.workflows.quantization.quantize import QuantizeRequest, quantize

    _refuse_what_cannot_be(given, precision)
    request = QuantizeRequest(
        source=source_of(model, given),
        target=Target(given["output"], layout_of(given, ExternalData.AUTO)),
        options=QuantizeOptions(
            precision=precision,
            percentile=given["percentile"],
            per_channel=not given["per_tensor"],
            float_weights=given["float_weights"],
            reduce_range=given["reduce_range"],
            modelopt_python=given["modelopt_python"],
        ),
        calibrations=usable_ways(given["calibrate"], given["modelopt_python"], per_channel=not given["per_tensor"]),
        kept=NodeChoice(names=given["keep_nodes"], op_types=given["keep_op_types"], scopes=given["keep_scopes"]),
        feeding=feeding,
        holdout=FeedRequest(paths=given["holdout"]) if given["holdout"] else None,
        metric=metric_of(given["metric_script"], Limits()),
        sqnr_db=given["sqnr"],
        metric_min=given["metric_min"],
        accept_lost=verify_of(given["verify"]) is Verify.NEVER,
    )
    with contextlib.closing(Teller(err=as_json)) as teller:
        result = quantize(request, progress=teller.progress)
    if as_json:
        print_document(to_json(result))
        return
    for line in lines(result):
        click.echo(printable(line))


def lines(result: "QuantizeResult") -> list[str]:
    """Return a result as lines of text."""
    shown = {True: "the calibration samples themselves", False: f"{len(result.held_out)} held-out samples"}
    found = [
        f"{result.model} -> {result.output}",
        f"  {result.precision}, {len(result.quantized)} nodes quantized"
        + (f", {len(result.kept)} kept in float" if result.kept else "")
        + f"; calibrated on {len(result.samples)} samples ({result.inputs} data), judged by "
        + shown[result.held_out == result.samples],
    ]
    for tried in result.tried:
        mark = "*" if tried.calibration == result.calibration else " "
        metric = "" if tried.metric is None else f", metric {tried.metric:.4f}"
        found.append(
            f"  {mark} {tried.calibration:<12}  {tried.quantized} nodes, worst output error {tried.worst:.2e}{metric}"
        )
    if result.sensitive:
        found.append(f"  left float, the most sensitive first: {', '.join(result.sensitive)}")
    if result.metric_after is not None:
        found.append(f"    {'written':<12}  metric {result.metric_after:.4f}")
    if result.metric_before is not None:
        found.append(f"    {'in float':<12}  metric {result.metric_before:.4f}")
    found += [f"  output '{name}': {db:.1f} dB" for name, db in result.sqnr_db.items()]
    for use in result.outgrown[:MOST_SHOWN]:
        found.append(
            f"  '{use.value}' reaches {use.largest:.3g} on {use.sample}, calibrated to {use.range:.3g}: "
            f"{use.clipped_share:.2%} clipped, {use.clipping_over_rounding:.3g}x the noise of rounding"
        )
    if result.outgrown:
        worst = collections.Counter(use.sample for use in result.outgrown).most_common(MOST_NAMED)
        found.append(
            f"  {len(result.outgrown)} ranges clip more than they round: recalibrate with samples like "
            + ", ".join(name for name, _ in worst)
        )
    return [*found, *(f"note: {notice}" for notice in result.notices)]

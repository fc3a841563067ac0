"""``triage convert`` to 8 bits: its options, and how the result is shown."""

import collections
import contextlib
import sys
from typing import TYPE_CHECKING

import click

from tensortriage.api import FeedRequest
from tensortriage.sdk import (
    MetricOptions,
    Teller,
    UsageError,
    answer,
    count,
    error_size,
    flag,
    magnitude,
    metric_field,
    option,
    part,
    percent,
    request,
    times,
)

if TYPE_CHECKING:
    from tensortriage.api import ConvertRequest
    from tensortriage.precision.sdk import Precision, TaskMetric
    from tensortriage_quantize.quantize import QuantizeRequest, QuantizeResult

WORDS = ("auto", "minmax", "percentile", "entropy")
ENGINES = ("onnxruntime", "tensorrt", "openvino", "qnn")
MOST_SHOWN, MOST_NAMED = 5, 3


@request
class EightBitOptions:
    """Settings of quantization."""

    # fmt: off
    metric: "TaskMetric | None" = part(factory=MetricOptions, limits=None, script=metric_field(
        "; the calibration with the best metric is used", group="8 bits"))
    metric_min: float | None = option(
        "--metric-min", "X", "Smallest mean of the metric, on the engine of --for; the fewest nodes that prevent it "
        "stay float.", default=None)
    sqnr: float | None = option(
        "--sqnr", "DB", "Signal-to-noise ratio that every output must reach, in dB; the fewest nodes that prevent it "
        "stay float.", default=None)
    engine: str = option(
        "--for", "ENGINE", "The engine that will run the file: types, symmetry and places of the pairs are those that "
        "its integer kernels accept.", default=ENGINES[0], choices=ENGINES)
    holdout: tuple[str, ...] = option(
        "--holdout", "PATH...", "Samples by which the calibrations are judged  [default: every fourth of --inputs].",
        default=())
    float_weights: bool = flag(
        "--float-weights", "Keep weights in float behind a Q/DQ pair  [default: stored in 8 bits].", rare=True)
    per_tensor: bool = flag(
        "--per-tensor", "Use one scale per weight  [default: one per output channel].", rare=True)
    reduce_range: bool = flag(
        "--reduce-range", "Quantize int8 weights to 7 bits, for x86 processors without VNNI, on which sums of 8-bit "
        "products overflow.")
    percentile: float = option(
        "--percentile", "P", "Share of the values, in percent, that a percentile range covers.",
        default=99.99, least=50, most=100, rare=True)
    calibrate: str = option(
        "--calibrate", "", "How ranges are calibrated; auto tries every way and takes the best.",
        default="auto", choices=WORDS)
    # fmt: on

    def converted(self, wanted: "ConvertRequest", *, as_json: bool) -> bool:
        """See `tensortriage.sdk.Conversion`."""
        from tensortriage.precision.sdk import Precision

        self.check(wanted.precision)
        if wanted.precision not in (Precision.INT8, Precision.FP8E4M3):
            return False
        self.convert_and_show(wanted, wanted.precision, as_json=as_json)
        return True

    def check(self, precision: "Precision | None") -> None:
        """Refuse options that ask something of 8-bit numbers when there are to be none, or contradict each other.

        Raises:
            UsageError: When one is given without such a format, or without another one (``option-needs-another``).
            click.UsageError: When two contradict each other.
        """
        from tensortriage.precision.sdk import Precision

        flags = {
            "--metric": self.metric, "--metric-min": self.metric_min, "--sqnr": self.sqnr,
            "--holdout": self.holdout or None, "--float-weights": self.float_weights or None,
            "--per-tensor": self.per_tensor or None,
            "--reduce-range": self.reduce_range or None, "--for": self.engine if self.engine != ENGINES[0] else None,
        }  # fmt: skip
        flag = next((name for name, value in flags.items() if value is not None), "")
        if precision not in (Precision.INT8, Precision.FP8E4M3):
            if flag:
                message = f"{flag} without --int8 or --fp8"
                raise UsageError(message, slug="option-needs-another", cure=f"add --int8 to {flag}")
            return
        if self.metric_min is not None and self.metric is None:
            message = "--metric-min without --metric"
            raise UsageError(message, slug="option-needs-another", cure="name the metric: --metric")
        if self.reduce_range and precision is not Precision.INT8:
            raise click.UsageError(f"--reduce-range is for int8, and {precision.value} was requested")

    def convert_and_show(self, wanted: "ConvertRequest", precision: "Precision", *, as_json: bool) -> None:
        """Quantize a model and report the loss.

        Raises:
            UsageError: When the conversion is to change something else too (``quantize-not-edited``).
        """
        from tensortriage.sdk import OutputChoice
        from tensortriage_quantize.quantize import quantize

        if wanted.opset or wanted.infer_shapes or not wanted.keep_io_types or wanted.outputs != OutputChoice():
            raise UsageError(
                "a conversion to 8 bits changes formats and nothing else", slug="quantize-not-edited",
                cure="edit the model first: triage convert MODEL -o edited.onnx",
            )  # fmt: skip
        with contextlib.closing(Teller(err=as_json)) as teller:
            result = quantize(self._request(wanted, precision), progress=teller.progress)
        answer(result, lines(result), as_json=as_json)
        if result.exit_code:
            sys.exit(result.exit_code)

    def _request(self, wanted: "ConvertRequest", precision: "Precision") -> "QuantizeRequest":
        from tensortriage.api import Target
        from tensortriage.precision.sdk import ExternalData
        from tensortriage.sdk import Verify
        from tensortriage_quantize.calibration.calibrated_model import Calibration, QuantizeOptions
        from tensortriage_quantize.quantize import QuantizeRequest

        target = wanted.target
        if target.external_data is ExternalData.LEAVE:
            target = Target(target.path, ExternalData.AUTO)
        return QuantizeRequest(
            source=wanted.source,
            target=target,
            options=QuantizeOptions(
                precision=precision,
                percentile=self.percentile,
                per_channel=not self.per_tensor,
                float_weights=self.float_weights,
                reduce_range=self.reduce_range,
                engine=self.engine,
            ),
            calibrations=tuple(Calibration) if self.calibrate == "auto" else (Calibration(self.calibrate),),
            kept=wanted.kept,
            feeding=wanted.proof.feeding,
            holdout=FeedRequest(paths=self.holdout) if self.holdout else None,
            metric=self.metric,
            sqnr_db=self.sqnr,
            metric_min=self.metric_min,
            accept_lost=wanted.proof.verify is Verify.NEVER,
        )


def lines(result: "QuantizeResult") -> list[str]:
    """Return a result as lines of text."""
    shown = {True: "the same", False: count(len(result.held_out), "held-out sample")}
    found = [
        f"{result.model} -> {result.output}",
        f"  {result.precision}, {len(result.quantized)} nodes quantized"
        + (f", {len(result.kept)} kept in float" if result.kept else "")
        + f"; calibrated on {count(len(result.samples), 'sample')} ({result.inputs} data), judged by "
        + shown[result.held_out == result.samples],
    ]
    for tried in result.tried:
        mark = "*" if tried.calibration == result.calibration else " "
        metric = "" if tried.metric is None else f", metric {tried.metric:.4f}"
        found.append(
            f"  {mark} {tried.calibration:<12}  {tried.quantized} nodes, worst output error "
            f"{error_size(tried.worst)}{metric}"
        )
    if result.sensitive:
        found.append(f"  left float, the most sensitive first: {', '.join(result.sensitive)}")
    if result.metric_after is not None:
        found.append(f"    {'written':<12}  metric {result.metric_after:.4f}, run on {result.judged_on}")
    if result.metric_before is not None:
        found.append(f"    {'in float':<12}  metric {result.metric_before:.4f}")
    found += [f"  output '{name}': {db:.1f} dB on {result.judged_on}" for name, db in result.sqnr_db.items()]
    if result.reached is False:
        found.append(f"  missed: the written file does not reach {result.goal} on {result.judged_on}; it is kept")
    elif result.reached:
        found.append(f"  reached: {result.goal}")
    for use in result.outgrown[:MOST_SHOWN]:
        found.append(
            f"  '{use.value}' reaches {magnitude(use.largest)} on {use.sample}, calibrated to {magnitude(use.range)}: "
            f"{percent(use.clipped_share)} clipped, {times(use.clipping_over_rounding)} the noise of rounding"
        )
    if result.outgrown:
        worst = collections.Counter(use.sample for use in result.outgrown).most_common(MOST_NAMED)
        found.append(
            f"  {len(result.outgrown)} ranges clip more than they round: recalibrate with samples like "
            + ", ".join(name for name, _ in worst)
        )
    return [*found, *(f"note: {notice}" for notice in result.notices)]

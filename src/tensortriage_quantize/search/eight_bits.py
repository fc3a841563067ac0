"""A precision search in 8 bits: the best calibration, a session with a switch per node, candidates with Q/DQ pairs."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from tensortriage.api import Model
from tensortriage.precision.sdk import (
    Choosable,
    EngineSetup,
    GoalSample,
    Lab,
    Opened,
    Precision,
    Samples,
    TaskMetric,
    ValueSpec,
    explained,
    identity_of,
    sums_in_int16,
)
from tensortriage.sdk import digest
from tensortriage_quantize.calibration.calibrated_model import Calibration, ModelQuantizer, QuantizeOptions
from tensortriage_quantize.calibration.calibration_search import FOLD, calibrated, hold_out
from tensortriage_quantize.calibration.operand_ranges import require_numbers_in
from tensortriage_quantize.pairs.engine_styles import style_word, written_for
from tensortriage_quantize.search.pair_emulation import of_quantizers
from tensortriage_quantize.search.quantized_candidates import QuantizedCandidates

CPU_ENGINES = ("onnxruntime", "openvino")
"""Engines whose int8 kernels depend on the processor here."""


def held_out(samples: Samples, tell: Callable[[str], None]) -> tuple[Samples, Samples]:
    """Return the samples that calibrate and those that judge; say when they are the same."""
    calibrating, judging = hold_out(samples)
    if len(samples) < FOLD:
        tell(
            f"the {len(samples)} sample(s) that calibrate also judge, which flatters: give {FOLD} or more and every "
            f"{FOLD}th judges the others"
        )
    else:
        tell(f"{len(calibrating)} samples calibrate, {len(judging)} others judge")
    return tuple(calibrating), tuple(judging)


def best_quantizer(
    model: Model,
    options: QuantizeOptions,
    calibrating: Sequence[GoalSample],
    judging: Sequence[GoalSample],
    lab: Lab,
    *,
    metric: TaskMetric | None = None,
    identity: str,
    tell: Callable[[str], None],
) -> tuple[str, ModelQuantizer]:
    """Return the best way to calibrate a model, by its word and as quantizer.

    Args:
        model: The float model.
        options: How; the calibration is chosen.
        calibrating: Samples whose feeds calibrate.
        judging: Samples to judge by.
        lab: Runs the models; the files of the quantizer live in its workspace.
        metric: Task metric that chooses the calibration; None for the output error.
        identity: Digest of the judging samples and of the required accuracy.
        tell: Receives a line on the chosen calibration.

    Raises:
        ModelError: When nothing can be quantized, or the quantizer refuses.
    """
    feeds = [sample.feed for sample in calibrating]
    require_numbers_in([*feeds, *(sample.feed for sample in judging)])
    ways = calibrated(
        model,
        feeds,
        judging,
        options=options,
        lab=lab,
        metric=metric,
        identity=identity,
    )
    word = ways.best.tried.calibration
    tell(f"calibrated on {len(feeds)} sample(s): {word} is the best of {len(ways.found)} ways")
    return word, ways.best.quantizer


def open_quantized(
    model: Model,
    precision: Precision,
    specs: Mapping[str, ValueSpec],
    bench: EngineSetup,
    *,
    calibrating: Sequence[GoalSample],
    metric: TaskMetric | None,
    tell: Callable[[str], None],
    seconds: float | None = None,
) -> Opened:
    """Return the candidates' choices, their measurement (to be closed), and the candidates.

    Types and places of the pairs are those of the engine. Where the processor has no VNNI, an engine of the CPU that
    does worse than the pairs explain is asked for weights in 7 bits as well, whose sums its kernels can hold; the
    better ones are returned.

    Args:
        model: The float model.
        precision: int8 or fp8e4m3.
        specs: Types of its values.
        bench: Where candidates run; its samples judge.
        calibrating: Samples whose feeds calibrate.
        metric: Task metric that chooses the calibration; None for the output error.
        tell: Receives a line on the chosen calibration.
        seconds: Time for measuring each node's effect alone; None for no limit.

    Raises:
        ModelError: When nothing can be quantized, or the quantizer refuses.
    """
    options = QuantizeOptions(precision=precision, engine=style_word(bench.spec))
    word, quantizer = best_quantizer(
        model, options, calibrating, bench.samples, bench.lab,
        metric=metric, identity=identity_of(bench.samples, bench.goal), tell=tell,
    )  # fmt: skip

    def opened(quantizer: ModelQuantizer, *, narrow: bool) -> Opened:
        pairs = quantizer.quantized(float_weights=True)
        emulation = of_quantizers(pairs, bench.samples, bench.goal, lab=bench.lab, seconds=seconds)
        written = (*written_for(options.engine), *["--reduce-range"] * narrow)
        stage = Choosable(model=model, precision=precision, specs=specs, items=emulation.items, written=written)
        made = QuantizedCandidates(stage, quantizer, bench=bench, calibrated=calibrated_on, before=int(narrow))
        return stage, emulation, made

    calibrated_on = digest(word, [sample.feed.digest for sample in calibrating])
    whole = opened(quantizer, narrow=False)
    if precision is not Precision.INT8 or bench.spec.name not in CPU_ENGINES or not sums_in_int16():
        return whole
    reading = whole[2].read(())
    if explained(reading, whole[1].read(())):
        return whole
    folder = bench.lab.workspace.folder / "seven-bits"
    folder.mkdir()
    options = dataclasses.replace(options, calibration=Calibration(word), reduce_range=True)
    narrow = opened(
        ModelQuantizer(model, [sample.feed for sample in calibrating], options, folder=folder, lab=bench.lab),
        narrow=True,
    )
    better = narrow[2].read(()).error < reading.error
    tell(
        f"the target does worse than the pairs explain, and this processor has no VNNI; with weights in 7 bits it does "
        f"{'better: they are used' if better else 'no better'}"
    )
    chosen, other = (narrow, whole) if better else (whole, narrow)
    other[1].close()
    return chosen

"""A precision search in 8 bits: the best calibration, a session with a switch per node, candidates with Q/DQ pairs."""

import dataclasses
from collections.abc import Callable, Sequence

from tensortriage.api import Model
from tensortriage.precision.sdk import (
    Calibrating,
    Choosable,
    EngineSetup,
    GoalSample,
    Lab,
    Opened,
    Precision,
    Samples,
    explained,
    identity_of,
    sums_in_int16,
)
from tensortriage.sdk import count, digest
from tensortriage_quantize.calibration.calibrated_model import Calibration, ModelQuantizer, QuantizeOptions
from tensortriage_quantize.calibration.calibration_search import FOLD, Judging, calibrated, hold_out
from tensortriage_quantize.calibration.operand_ranges import require_numbers_in
from tensortriage_quantize.pairs.engine_styles import style_word, written_for
from tensortriage_quantize.search.pair_emulation import of_quantizers
from tensortriage_quantize.search.quantized_candidates import QuantizedCandidates

CPU_ENGINES = ("onnxruntime", "openvino")
"""Engines whose int8 kernels depend on the processor here."""


def held_out(samples: Samples, tell: Callable[[str], None]) -> tuple[Samples, Samples]:
    """Return the samples that calibrate and those that judge; warn when they are the same."""
    calibrating, judging = hold_out(samples)
    if len(samples) < FOLD:
        tell(
            f"the result is judged by what calibrates it, {count(len(samples), 'sample')}, and so looks better than it "
            f"is: give {FOLD} or more, and every {FOLD}th judges"
        )
    else:
        tell(f"{len(calibrating)} samples calibrate, {len(judging)} others judge")
    return tuple(calibrating), tuple(judging)


def best_quantizer(
    model: Model,
    options: QuantizeOptions,
    calibrating: Sequence[GoalSample],
    judging: Judging,
    lab: Lab,
    tell: Callable[[str], None],
) -> tuple[str, ModelQuantizer]:
    """Return the best way to calibrate a model, by its word and as quantizer.

    Args:
        model: The float model.
        options: How; the calibration is chosen.
        calibrating: Samples whose feeds calibrate.
        judging: Chooses the calibration.
        lab: Runs the models; the files of the quantizer live in its workspace.
        tell: Receives a line on the chosen calibration.

    Raises:
        ModelError: When nothing can be quantized, or the quantizer refuses.
    """
    feeds = [sample.feed for sample in calibrating]
    require_numbers_in([*feeds, *(sample.feed for sample in judging.samples)])
    tries = [dataclasses.replace(options, calibration=each) for each in Calibration]
    ways = calibrated(model, feeds, judging, tries=tries, lab=lab)
    word = ways.best.tried.calibration
    tell(f"calibrated on {count(len(feeds), 'sample')}: {word} is the best of {len(ways.found)} ways")
    return word, ways.best.quantizer


def open_quantized(
    stage: Choosable,
    bench: EngineSetup,
    calibrated_by: Calibrating,
    *,
    tell: Callable[[str], None],
    seconds: float | None = None,
) -> Opened:
    """Return the candidates' choices, their measurement (to be closed), and the candidates.

    Types and places of the pairs are those of the engine. Where the processor has no VNNI, an engine of the CPU that
    does worse than the pairs explain is also tried with weights in 7 bits, whose sums its kernels can hold; the better
    ones are returned.

    Args:
        stage: The float model and the format; the units of choice are determined here.
        bench: Runs candidates; its samples judge.
        calibrated_by: Samples whose feeds calibrate, and the task metric that chooses the calibration.
        tell: Receives a line on the chosen calibration.
        seconds: Time for measuring each node's effect alone; None for no limit.

    Raises:
        ModelError: When nothing can be quantized, or the quantizer refuses.
    """
    model, precision, (calibrating, metric) = stage.model, stage.precision, calibrated_by
    options = QuantizeOptions(precision=precision, engine=style_word(bench.spec))
    judging = Judging(bench.samples, metric, identity_of(bench.samples, bench.goal))
    word, quantizer = best_quantizer(model, options, calibrating, judging, bench.lab, tell)

    def opened(quantizer: ModelQuantizer, *, narrow: bool) -> Opened:
        pairs = quantizer.quantized(float_weights=True)
        emulation = of_quantizers(
            pairs, bench.samples, bench.goal, lab=bench.lab, seconds=seconds, nodes=quantizer.choices
        )
        written = (*written_for(options.engine), *["--reduce-range"] * narrow)
        found = dataclasses.replace(stage, items=emulation.items, written=written)
        made = QuantizedCandidates(found, quantizer, bench=bench, calibrated=calibrated_on, before=int(narrow))
        return found, emulation, made

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
        f"the target's error exceeds that of the pairs, and this processor has no VNNI; with weights in 7 bits it does "
        f"{'better: they are used' if better else 'no better'}"
    )
    chosen, other = (narrow, whole) if better else (whole, narrow)
    other[1].close()
    return chosen

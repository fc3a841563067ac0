"""8 bits in `debug precision`: candidates are models with Q/DQ pairs at all nodes but those kept."""

import shlex
from collections.abc import Callable, Mapping, Sequence

from tensortriage.api import Model
from tensortriage.precision.sdk import (
    Calibrating,
    Choosable,
    CommandCandidates,
    EngineSetup,
    GoldenValues,
    NumberFormat,
    Opened,
    Precision,
    Samples,
    ValueSpec,
    triage_command,
)
from tensortriage_quantize.pairs.engine_styles import style_word, written_for
from tensortriage_quantize.search.eight_bits import held_out, open_quantized
from tensortriage_quantize.search.shown import QuantizedShown, quantizer_settings


class EightBits(NumberFormat):
    """int8 or fp8e4m3 by pairs of quantizers, whose scales are calibrated.

    Args:
        precision: Which of them.
    """

    def __init__(self, precision: Precision) -> None:
        self._precision = precision

    def divided(self, samples: Samples, tell: Callable[[str], None]) -> tuple[Samples, Samples]:
        """See `NumberFormat`: every fourth judges, or all do both where there are too few."""
        return held_out(samples, tell)

    def opened(
        self,
        model: Model,
        specs: Mapping[str, ValueSpec],
        setup: EngineSetup,
        calibrating: Calibrating,
        *,
        tell: Callable[[str], None],
        seconds: float | None = None,
    ) -> Opened:
        """See `NumberFormat`: by the best calibration."""
        stage = Choosable(model=model, precision=self._precision, specs=specs, items=())
        return open_quantized(stage, setup, calibrating, tell=tell, seconds=seconds)

    def shown(self, source: GoldenValues, tell: Callable[[str], None]) -> CommandCandidates:
        """See `NumberFormat`."""
        return QuantizedShown(source, self._precision, tell)

    def settings(self, whole: Sequence[str], stage: Choosable) -> Mapping[str, str]:
        """See `NumberFormat`."""
        return quantizer_settings(whole, self._precision, written=stage.written)

    def doubting(self, source: GoldenValues) -> list[str]:
        """See `NumberFormat`: the engine runs a Q/DQ model."""
        file = "quantized.onnx"
        question = source.question
        diagnose = ["triage", "diagnose", file, "--target", str(question.target)]
        inputs = ["--inputs", *question.input_paths] if question.input_paths else []
        style = written_for(style_word(source.question.target))
        convert = triage_command(source.question, "convert", "--precision", self._precision.value, *style, "-o", file)
        return [convert, shlex.join([*diagnose, *inputs])]

"""Candidates in 8 bits: models with Q/DQ pairs at all nodes but those kept, built and run on the engine as they are."""

from collections.abc import Collection

from tensortriage.api import Model
from tensortriage.precision.sdk import Candidates, Choosable, EngineSetup, GoalReading, Precision, deployed
from tensortriage.sdk import EngineSpec
from tensortriage_quantize.calibration.calibrated_model import ModelQuantizer


class QuantizedCandidates(Candidates):
    """Q/DQ models of one float model, by one calibration.

    Args:
        stage: The float model and its choice of nodes.
        quantizer: Makes the models.
        bench: Runs them.
        calibrated: How the quantizer was calibrated.
        before: Models built to decide on this quantizer.
    """

    def __init__(
        self,
        stage: Choosable,
        quantizer: ModelQuantizer,
        *,
        bench: EngineSetup,
        calibrated: str = "",
        before: int = 0,
    ) -> None:
        spec = deployed(bench.spec) if bench.spec.name == "emulate" else bench.spec  # the pairs say what is in 8 bits
        super().__init__(stage, bench=bench, spec=spec, words=(calibrated, stage.written))
        self._stage = stage
        self._before = before
        self._quantizer = quantizer

    def model(self, kept: Collection[str]) -> Model:
        """See `Candidates`; with every node kept it is the float model itself."""
        return self._stage.model if self._is_float(kept) else self._quantizer.quantized(kept)

    def as_asked(self) -> GoalReading:
        """Return the reading of the model with every node quantized: the float model's proves nothing about 8 bits."""
        return self.read(())

    @property
    def asked(self) -> int:
        """See `Candidates`."""
        return self._before + len(self.read_sets)

    def _is_float(self, kept: Collection[str]) -> bool:
        return set(self._stage.items) <= set(kept)

    def _engine(self, kept: frozenset[str]) -> EngineSpec:
        word = self.spec.options.get("precision")
        if word is None or not self._is_float(kept) or Precision.parse(word) is not self._stage.precision:
            return self.spec
        # for 8 bits of a model without pairs, an engine refuses it or makes up scales
        return self.spec.with_options({**self.spec.options, "precision": Precision.FP32.value})

"""Candidates in 8 bits: models with Q/DQ pairs at all nodes but those kept, built and run on the engine as they are."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from tensortriage.engines.spec import EngineSpec
from tensortriage.model.model import Model
from tensortriage.precision.goal import GoalReading
from tensortriage.precision.quantization.calibrated_model import ModelQuantizer
from tensortriage.precision.selection.typed_candidates import Candidates, EngineSetup, deployed
from tensortriage.runs.capabilities.plan_audit import PlanAudit
from tensortriage.values.dtype import Precision
from tensortriage.values.spec import ValueSpec


@dataclass(frozen=True)
class QuantizedStage:
    """A float model and the nodes that can be quantized.

    Attributes:
        model: The model.
        precision: int8 or fp8e4m3.
        specs: Types of its values.
        items: Nodes to choose from, in topological order.
        fixed: None: what cannot be quantized is no candidate.
        movers: None: a node without quantizers computes in whatever its operands come in.
    """

    model: Model
    precision: Precision
    specs: Mapping[str, ValueSpec]
    items: tuple[str, ...]
    fixed: tuple[str, ...] = ()
    reduce_range: bool = False
    movers: frozenset[str] = frozenset()


class QuantizedCandidates(Candidates):
    """Q/DQ models of one float model, by one calibration.

    Args:
        stage: The float model and its choice of nodes.
        quantizer: Makes the models.
        bench: Where they run; its identity says how they were calibrated.
        before: Models built to decide on this quantizer.
    """

    def __init__(
        self, stage: QuantizedStage, quantizer: ModelQuantizer, *, bench: EngineSetup, before: int = 0
    ) -> None:
        super().__init__(stage.precision, bench=bench, spec=_builder(bench.spec))
        self._stage = stage
        self._before = before
        self._quantizer = quantizer

    def model(self, kept: Collection[str]) -> Model:
        """See `Candidates`; with every node kept it is the float model itself."""
        return self._stage.model if self._is_float(kept) else self._quantizer.quantized(kept)

    def as_asked(self) -> GoalReading:
        """Return the reading of the model with every node quantized: the float one says nothing about 8 bits."""
        return self.read(())

    @property
    def builds(self) -> int:
        """See `Candidates`."""
        return self._before + len(self.read_sets)

    def audited(self, kept: Collection[str]) -> PlanAudit | None:
        """See `Candidates`; the pairs say what is asked for."""
        return self.bench.audited(self._engine(frozenset(kept)), self.model(kept))

    def _is_float(self, kept: Collection[str]) -> bool:
        return set(self._stage.items) <= set(kept)

    def _engine(self, kept: frozenset[str]) -> EngineSpec:
        word = self.spec.options.get("precision")
        if word is None or not self._is_float(kept) or Precision.parse(word) is not self._stage.precision:
            return self.spec
        # asked for 8 bits of a model without pairs, an engine refuses it or makes up scales
        return self.spec.with_options({**self.spec.options, "precision": Precision.FP32.value})


def _builder(spec: EngineSpec) -> EngineSpec:
    """Return the engine for Q/DQ models: as named, for the pairs say what is to be computed in 8 bits."""
    return deployed(spec) if spec.name == "emulate" else spec

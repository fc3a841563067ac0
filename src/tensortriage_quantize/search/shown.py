"""Candidates with Q/DQ pairs that a command judges."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence

from tensortriage.api import Model
from tensortriage.precision.sdk import (
    Choosable,
    Emulation,
    GoldenValues,
    Precision,
    PrecisionGoal,
    feed_digest,
    in_order,
    samples_of,
)
from tensortriage.sdk import digest
from tensortriage_quantize.calibration.calibrated_model import QuantizeOptions
from tensortriage_quantize.calibration.calibration_search import Judging
from tensortriage_quantize.pairs.engine_styles import EXPLICIT, written_for
from tensortriage_quantize.search.eight_bits import best_quantizer, held_out
from tensortriage_quantize.search.pair_emulation import of_quantizers


class QuantizedShown:
    """Candidates with Q/DQ pairs at all nodes but those kept; attributes as of `TypedShown`."""

    scaled = True

    def __init__(self, source: GoldenValues, precision: Precision, tell: Callable[[str], None]) -> None:
        self._source = source
        calibrating, self._judging = held_out(samples_of(source), tell)
        if source.question.inputs_word == "random":
            tell("calibrated on random data: the ranges mean nothing for real inputs; give samples with --inputs")
        judged_by = digest([[sample.feed.digest, feed_digest(sample.outputs)] for sample in self._judging])
        word, self._quantizer = best_quantizer(
            source.question.model, QuantizeOptions(precision=precision), calibrating,
            Judging(self._judging, identity=judged_by), source.lab, tell,
        )  # fmt: skip
        self.identity = digest(word, [sample.feed.digest for sample in calibrating])
        self.stage = Choosable(
            model=source.question.model,
            precision=precision,
            specs=source.specs(source.question.feeds[0]),
            items=tuple(self._quantizer.nodes),
            written=written_for(EXPLICIT),  # what the command runs is not known
        )

    def whole(self, kept: Collection[str]) -> tuple[str, ...]:
        """Return all nodes in the higher precision when some are kept, in topological order."""
        return in_order(self.stage.model, kept)

    def model(self, kept: Collection[str]) -> Model:
        """Return the candidate with the given nodes kept; with every node kept it is the float model itself."""
        return self.stage.model if set(self.stage.items) <= set(kept) else self._quantizer.quantized(kept)

    def emulation(self, goal: PrecisionGoal, seconds: float | None) -> Emulation:
        """Return the measurement of each node's effect (to be closed)."""
        whole = self._quantizer.quantized(float_weights=True)
        return of_quantizers(
            whole, self._judging, goal, lab=self._source.lab, seconds=seconds, nodes=self._quantizer.choices
        )

    def settings(self, whole: Sequence[str]) -> Mapping[str, str]:
        """Return the same choice for other tools."""
        return quantizer_settings(whole, self.stage.precision, written=self.stage.written)


def quantizer_settings(
    kept: Collection[str], precision: Precision, *, written: Sequence[str] = ()
) -> Mapping[str, str]:
    """Return the settings of each tool that leave these nodes unquantized.

    - ``onnxruntime``: arguments of ``quantize_static``.
    - ``triage``: the options of ``triage convert``.

    Args:
        kept: The nodes.
        precision: int8 or fp8e4m3.
        written: Options of ``triage convert`` besides.
    """
    names = list(kept)
    words = [f"--precision {precision.value}", *written]
    narrow = {"reduce_range": True} if "--reduce-range" in written else {}
    return {
        "onnxruntime": json.dumps({"nodes_to_exclude": names, **narrow}),
        "triage": " ".join([*words, *(["--keep-nodes", *names] if names else [])]),
    }

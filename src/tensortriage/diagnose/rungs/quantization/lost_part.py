"""Is a part of an output lost, though the whole is not? Then the file is useless for whoever reads that part.

Parts are what the graph puts together (`tensortriage.model.inspect.output_parts`), never slices by their magnitude: the
tiny classes of a Softmax are lost in sound files too. A part that is noise in the original model cannot be lost.
"""

import dataclasses
import math

import numpy as np

from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.judgement.within import is_lost, is_noise
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.diagnose.measurements.evidence import Calibrated
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Culprit
from tensortriage.envelope.floors import fp32_floors
from tensortriage.inputs.feed import Feed
from tensortriage.model.inspect.output_parts import OutputPart, output_parts, way_to_concat
from tensortriage.model.ir.graph import Graph
from tensortriage.model.model import Model
from tensortriage.model.quantization.qdq import Quantizer, bypass, quantizers
from tensortriage.values.text import error_size, magnitude


@dataclasses.dataclass(frozen=True, slots=True)
class LostPart:
    """A part of an output that a file loses.

    Attributes:
        output: The output.
        part: The part.
        error: Relative error of the part.
        others: RMS of the largest of the other parts.
        own: RMS of this one.
    """

    output: str
    part: OutputPart
    error: float
    others: float
    own: float

    @property
    def words(self) -> str:
        """The loss, as a clause."""
        share = "all" if self.error >= 1.0 else error_size(self.error)
        return f"{share} of the signal of '{self.part.value}', a part of output '{self.output}',"

    @property
    def reason(self) -> str:
        """The cause, as a clause."""
        return f"joins values of {magnitude(self.others)} with '{self.part.value}' of {magnitude(self.own)}"


def lost_part(inv: Investigation, file: Model, fed: Feed) -> LostPart | None:
    """Return the part that a file loses most on the reference; None where every part is left.

    Args:
        inv: The investigation, of the original model.
        file: The file.
        fed: The first feed, as the file takes it.

    Raises:
        EngineError: When the reference cannot run one of them.
    """
    feed, graph = inv.question.feeds[0], inv.model.graph
    shapes = {
        name: tuple(size for size in spec.shape if isinstance(size, int))
        for name, spec in inv.golden.specs(feed).items()
        if spec.shape is not None
    }
    golden, found = inv.golden.outputs(feed), inv.lab.outputs(inv.question.reference, file, fed)
    lost = []
    for output in (spec.name for spec in inv.model.outputs):
        parts = list(output_parts(graph, output, shapes))
        if len(parts) < 2 or output not in found or found[output].shape != golden[output].shape:
            continue
        right = np.asarray(golden[output])
        sizes = {part.value: float(np.sqrt(np.mean(np.square(part.of(right), dtype=np.float64)))) for part in parts}
        for part in parts:
            error = error_of(measure(part.of(right).copy(), part.of(found[output]).copy()))
            if math.isfinite(error) and is_lost(error):
                others = max(size for value, size in sizes.items() if value != part.value)
                lost.append(LostPart(output, part, error, others, sizes[part.value]))
    floors = fp32_floors(inv.setting(feed), [each.part.value for each in lost]) if lost else {}
    return max(
        (each for each in lost if not is_noise(floors.get(each.part.value, math.inf))),
        key=lambda each: each.error,
        default=None,
    )


def without_its_scale(inv: Investigation, file: Model, fed: Feed, lost: LostPart) -> tuple[str, Calibrated | None]:
    """Return the scale that parts share, as a clause, and the file without the quantizers of its Concat, tried.

    Raises:
        EngineError: When the reference cannot run that file.
    """
    pairs = _around(file.graph, lost.output)
    if not pairs:
        return "", None
    step = max(float(np.max(file.graph.weight(pair.scale))) for pair in pairs)
    words = f"; they share a step of {magnitude(step)}"
    mixed = bypass(file, {}, only={pair.dequantize for pair in pairs})
    right = lost.part.of(np.asarray(inv.golden.outputs(inv.question.feeds[0])[lost.output])).copy()
    outputs = inv.lab.outputs(inv.question.reference, mixed, fed)
    after = error_of(measure(right, lost.part.of(outputs[lost.output]).copy()))
    if is_lost(after):
        return words, None
    left = f"the quantizers at '{lost.part.concat.name}' left out"
    return words, Calibrated(mixed, lost.output, lost.error, after, "exclude", left)


def culprit_of(lost: LostPart) -> Culprit:
    """Return the Concat as a culprit."""
    concat = lost.part.concat
    return Culprit(concat.name, concat.op_type, concat.outputs[0], influence=lost.error, reason=lost.reason)


def _around(graph: Graph, output: str) -> list[Quantizer]:
    """Return the pairs between the Concat of an output and the output, and those of the Concat's operands."""
    way = way_to_concat(graph, output)
    if not way:
        return []
    by_result = {pair.result: pair for pair in quantizers(graph) if pair.quantize}
    seen = [*(name for node in way for name in (*node.outputs, *node.inputs))]
    return [by_result[name] for name in dict.fromkeys(seen) if name in by_result]

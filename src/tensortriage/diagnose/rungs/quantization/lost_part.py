"""Is a part of an output lost, though the whole is not? Then the file is useless for a reader of that part.

Parts are the tensors that the graph puts together (`tensortriage.model.inspect.output_parts`), never slices by their
magnitude: the tiny classes of a Softmax are lost in sound files too. A part that is noise in the original model cannot
be lost.
"""

import math

import numpy as np

from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.judgement.within import is_lost, is_noise
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.diagnose.measurements.evidence import Calibrated
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Culprit
from tensortriage.envelope.floors import fp32_floors
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.feed import Feed
from tensortriage.model.inspect.output_parts import OutputPart, way_to_composer, with_parts
from tensortriage.model.ir.graph import Graph
from tensortriage.model.model import Model
from tensortriage.model.quantization.qdq import Quantizer, bypass, quantizers
from tensortriage.values.text import error_size, magnitude


@frozen_dataclass
class LostPart:
    """A part of an output that a file loses.

    Attributes:
        error: Relative error of the part.
        others: RMS of the largest of the other parts.
        own: RMS of this one.
    """

    part: OutputPart
    error: float
    others: float
    own: float

    @property
    def words(self) -> str:
        """The loss, as a clause."""
        share = "all" if self.error >= 1.0 else error_size(self.error)
        return f"{share} of the signal of '{self.part.value}', a part of output '{self.part.output}',"

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
    setting = inv.setting(inv.question.feeds[0])
    right, found = setting.right, with_parts(inv.lab.outputs(inv.question.reference, file, fed), setting.parts)
    figures = {p.name: measure(right[p.name], found[p.name]) for p in setting.parts if {p.name} <= found.keys()}
    lost = []
    for part in setting.parts:
        error = error_of(figures[part.name]) if part.name in figures else 0.0
        if math.isfinite(error) and is_lost(error):
            siblings = [p.name for p in setting.parts if p.output == part.output and p is not part]
            others = max(figures[name].reference_rms for name in siblings)
            lost.append(LostPart(part, error, others, figures[part.name].reference_rms))
    floors = fp32_floors(setting, [each.part.output for each in lost]) if lost else {}
    return max(
        (each for each in lost if not is_noise(floors.get(each.part.name, math.inf))),
        key=lambda each: each.error,
        default=None,
    )


def without_its_scale(inv: Investigation, file: Model, fed: Feed, lost: LostPart) -> tuple[str, Calibrated | None]:
    """Return the scale that parts share, as a clause, and the file without the quantizers of its Concat, tried.

    Raises:
        EngineError: When the reference cannot run that file.
    """
    pairs = _around(file.graph, lost.part.output)
    if not pairs:
        return "", None
    step = max(float(np.max(file.graph.weight(pair.scale))) for pair in pairs)
    words = f"; they share a step of {magnitude(step)}"
    mixed = bypass(file, {}, only={pair.dequantize for pair in pairs})
    right = inv.setting(inv.question.feeds[0]).right[lost.part.name]
    outputs = inv.lab.outputs(inv.question.reference, mixed, fed)
    after = error_of(measure(right, lost.part.of(outputs[lost.part.output])))
    if is_lost(after):
        return words, None
    left = f"the quantizers at '{lost.part.composer.name}' left out"
    return words, Calibrated(mixed, lost.part.output, lost.error, after, "exclude", left)


def culprit_of(lost: LostPart) -> Culprit:
    """Return the node that puts the parts together as a culprit."""
    node = lost.part.composer
    return Culprit(node.name, node.op_type, node.outputs[0], influence=lost.error, reason=lost.reason)


def _around(graph: Graph, output: str) -> list[Quantizer]:
    """Return the pairs between the composing op and its output, and those of its operands."""
    way = way_to_composer(graph, output)
    if not way:
        return []
    by_result = {pair.result: pair for pair in quantizers(graph) if pair.quantize}
    seen = [*(name for node in way for name in (*node.outputs, *node.inputs))]
    return [by_result[name] for name in dict.fromkeys(seen) if name in by_result]

"""The layer-wise evidence of a diagnosis as plain rows, for reports and for sorting.

Errors are *relative RMS errors*: rms(target - reference) / rms(reference), so that tensors of any size and scale share
an axis; -20*log10 of it is the SQNR in dB.
"""

from tensortriage.compare.judgement.relative_error import RELATIVE_RMS
from tensortriage.envelope.limits import ORDERS
from tensortriage.frozen_dataclass import frozen_dataclass

LAYERS_FORMAT = "tensortriage.layers/1"
OUTPUTS_FORMAT = "tensortriage.outputs/1"

BY_FLOOR, BY_TOLERANCE = ORDERS, "tolerance"
PLAINLY = (BY_FLOOR, BY_TOLERANCE)
"""Limits met by an output as near to the reference as a healthy fp32 engine, or as the user's tolerance."""


@frozen_dataclass
class LayerRow:
    """One intermediate tensor. None means not measured.

    Attributes:
        value: ONNX value name.
        node: Name of the node that produces it.
        op_type: Its operator.
        scope: Dotted path of the module of the source network, empty when the file does not hold it.
        dtype: Label of the element type.
        shape: Shape on the first feed.
        order: Position in topological order, from 0.
        in_context_error: Relative RMS error in the target's own full run (inherited + new).
        floor: Noise floor of ``in_context_error``: the relative RMS error a healthy engine of this format may have.
        local_error: Relative RMS error of this op on the target with golden inputs (it originates here).
        local_floor: Noise floor of ``local_error``.
        floor_ratio: ``local_error / local_floor``.
        influence: Relative RMS error at the model's outputs when only the local error is injected into the reference.
        max_abs_reference: Largest finite magnitude in the reference.
        max_abs_target: Largest finite magnitude in the target.
        nonfinite_target: NaN and Inf elements in the target that the reference does not have.
        note: One short remark, e.g. ``exceeds fp16 (65504)``.
        source: Class of the module, and file and line, e.g. ``Linear, modeling_llama.py:281``; empty like ``scope``.
    """

    value: str
    node: str
    op_type: str
    scope: str = ""
    dtype: str = ""
    shape: tuple[int, ...] = ()
    order: int = 0
    in_context_error: float | None = None
    floor: float | None = None
    local_error: float | None = None
    local_floor: float | None = None
    floor_ratio: float | None = None
    influence: float | None = None
    max_abs_reference: float | None = None
    max_abs_target: float | None = None
    nonfinite_target: int = 0
    note: str = ""
    source: str = ""


@frozen_dataclass
class Layers:
    """The content of ``layers.json``."""

    rows: tuple[LayerRow, ...] = ()
    format: str = LAYERS_FORMAT


@frozen_dataclass
class OutputRow:
    """One model output compared between reference and target, worst feed.

    Attributes:
        name: Output name.
        dtype: Label of the element type.
        shape: Shape on the worst feed.
        sqnr_db: Signal to quantisation-noise ratio in dB, larger is better; inf when equal; None like the next but one.
        max_abs_error: Largest absolute error; None for indices.
        relative_rms_error: RMS error over RMS of the reference; None where that is meaningless: for indices and other
            values that are compared exactly.
        floor: Relative RMS error that the noise floor (or tolerance) allows; None when not known.
        within: Whether it passes.
        allowed_by: The source of the permission: ``tolerance``, or names of rows of the judge's registry, joined by a
            plus; empty where the error is beyond all of them.
        nonfinite_target: NaN and Inf elements that the reference does not have.
        feed: Name of the worst feed.
        predicted: Relative RMS error that rounding to the target's format predicts; equals ``floor`` for fp32.
        measure: Name of ``figure``, e.g. ``relative RMS error`` or ``share of ranks beyond a tie``.
        figure: Distance of the output from the reference; for outputs that an ArgMax, a TopK or a suppression of boxes
            decides, from the reference's result for the target's decisions.
        words: The same in words, as the rest of a sentence that begins with the output.
        needs_sentence: Whether figures cannot express the error: it is compared exactly, or decided.
        limit: Relative RMS error that a healthy engine of the target's format may have, whatever its hardware; None
            where a tolerance was given, or that error is meaningless.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    sqnr_db: float | None
    max_abs_error: float | None
    relative_rms_error: float | None
    floor: float | None
    within: bool
    nonfinite_target: int = 0
    feed: str = ""
    predicted: float | None = None
    measure: str = RELATIVE_RMS
    figure: float | None = None
    words: str = ""
    needs_sentence: bool = False
    allowed_by: str = ""
    limit: float | None = None

    @property
    def error(self) -> float:
        """How far the output is off, by its own measure."""
        return (self.relative_rms_error if self.figure is None else self.figure) or 0.0


@frozen_dataclass
class Outputs:
    """The content of ``outputs.json``."""

    rows: tuple[OutputRow, ...] = ()
    format: str = OUTPUTS_FORMAT

"""A comparison is one row per tensor that both sides have, in graph order, and the names that were left out.

A comparison without rows is refused: nothing may pass because nothing was looked at.
"""

import dataclasses
from collections.abc import Mapping

from tensortriage.compare.judgement.judgement import Judgement
from tensortriage.compare.judgement.relative_error import RELATIVE_RMS
from tensortriage.compare.metrics.tensor_metrics import Metrics
from tensortriage.errors import DataError
from tensortriage.frozen_dataclass import frozen_dataclass


@frozen_dataclass
class Row:
    """One compared tensor.

    Attributes:
        value: ONNX value name.
        node: Name of the node that produces it; empty when unknown.
        op_type: Operator of that node; empty when unknown.
        metrics: How far the target is from the reference.
        judgement: Whether that is within the limit.
        measure: Name of ``figure``: ``relative RMS error``, or a measure that fits indices and other exact types
            better, e.g. ``share of ranks beyond a tie``.
        figure: How far off the target is, by its measure.
        note: The decision of an ArgMax, a TopK or a suppression of boxes, in words, where the tensor depends on one.
            The metrics then compare with the reference's results for the target's decision.
        module: Module of the source network that the node comes from, with class and line; empty when unknown.
        retyped: The target's type and the model's, in words, where they differ.
    """

    value: str
    node: str
    op_type: str
    metrics: Metrics
    judgement: Judgement
    measure: str = RELATIVE_RMS
    figure: float | None = None
    note: str = ""
    module: str = ""
    retyped: str = ""

    @property
    def is_rms(self) -> bool:
        """Whether the relative RMS error measures the target's error."""
        return self.measure == RELATIVE_RMS


@frozen_dataclass
class Comparison:
    """All compared tensors of one reference and one target.

    Attributes:
        reference: Name of the side assumed to be right.
        target: Name of the side under suspicion.
        rows: One per compared tensor, in the order of the reference.
        unmatched: Names that could not be compared: on one side only, or of another shape.
        paired: Names of the reference's tensors that the target calls otherwise, recognized by their values, each with
            the target's name.

    Raises:
        DataError: When there is no row (``nothing-compared``).
    """

    reference: str
    target: str
    rows: tuple[Row, ...]
    unmatched: tuple[str, ...] = ()
    paired: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.rows:
            raise DataError(
                f"nothing of {self.target} was compared with {self.reference}",
                slug="nothing-compared",
                cure="compare runs of the same model on at least one feed",
            )

    @property
    def outside(self) -> tuple[Row, ...]:
        """Rows beyond their limit, in order: the first one is where the error shows up first."""
        return tuple(row for row in self.rows if not row.judgement.within)

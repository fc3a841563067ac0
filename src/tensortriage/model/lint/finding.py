"""A finding of a rule: the rule, its severity, place, reason and cure."""

import enum

from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.provenance.origin import UNKNOWN, NodeOrigin
from tensortriage.values.dtype import Precision

FORMATS = (Precision.FP16, Precision.BF16)
"""Formats whose traps are searched even unrequested: as hints."""

NARROW = (*FORMATS, Precision.FP8E4M3, Precision.FP8E5M2)
"""Formats with a smaller range than float32."""


class Severity(enum.Enum):
    """Severity of a finding; the value is the word in documents."""

    EXCEPTION = "exception"
    """An engine or onnx.checker refuses the model."""
    PROBLEM = "problem"
    """Wrong numbers, as the model is meant to run."""
    HINT = "hint"
    """A known trap: wrong only with certain data, or in a format that was not requested."""

    @property
    def fails(self) -> bool:
        """Whether a model with such a finding fails."""
        return self is not Severity.HINT


@frozen_dataclass
class LintFinding:
    """One thing that a rule, onnx.checker or an engine found.

    Attributes:
        slug: Name of the rule; docs/lint.md explains each.
        severity: How bad it is.
        node: Name of the node; empty when it is about a value or the whole model.
        op_type: Operator of the node.
        value: Name of the value; empty for a finding about the node itself.
        where: The body or function that holds it; empty for the main graph.
        why: What happens, one sentence.
        cure: What to do about it, in the imperative.
        source: Who says so: ``rule``, ``onnx_checker``, ``onnx_loader`` or an engine's name.
        origin: Module, class and line of the source network from which the node was made, as far as the file says.
    """

    slug: str
    severity: Severity
    node: str
    op_type: str
    value: str
    where: str
    why: str
    cure: str
    source: str = "rule"
    origin: NodeOrigin = UNKNOWN


@frozen_dataclass
class Aims:
    """Intended formats and habits of a model: their traps are problems, all others hints.

    Attributes:
        formats: Number formats it is to compute in.
        narrows_integers: Whether the engine computes in int32 where the model says int64.
        narrows_doubles: Whether it computes in float32 where the model says float64.
    """

    formats: frozenset[Precision] = frozenset()
    narrows_integers: bool = False
    narrows_doubles: bool = False

    def severity_in(self, precision: Precision) -> Severity:
        """Return how bad a certain fault in a format is."""
        return Severity.PROBLEM if precision in self.formats else Severity.HINT

    @property
    def looked_at(self) -> tuple[Precision, ...]:
        """Formats whose traps are searched, the requested ones first."""
        return tuple(dict.fromkeys((*(p for p in NARROW if p in self.formats), *FORMATS)))

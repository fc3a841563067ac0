"""The judgement of one tensor: whether it is within its limit, by how much, and the basis of the limit."""

import enum

from tensortriage.frozen_dataclass import frozen_dataclass


class Basis(enum.Enum):
    """The basis of a limit; code that shows a judgement reads this, never its words."""

    USER = "tolerance"
    """The user's own tolerance, or script."""

    FLOOR = "noise floor"
    """The difference between healthy fp32 engines."""

    FORMAT = "number format"
    """The cost of rounding to the target's number format."""

    HARDWARE = "hardware"
    """Freedoms of the target's class of hardware, such as narrower accumulators and approximations."""

    SENSITIVITY = "sensitivity"
    """How far outputs move with inputs: the only evidence on a model that cannot be evaluated. It convicts, and does
    not acquit: an error within it cannot be judged."""

    NOISE = "noise"
    """Healthy engines differ by a tenth of the value or more, or about NaN and Inf. It convicts, and does not acquit,
    likewise."""

    LOST = "signal lost"
    """The format would allow more than half of the signal, which is as much as any limit allows."""

    DECISION = "decision"
    """Valid picks (an index, a rank, a set of boxes) where scores are as close as on healthy engines."""

    EQUALITY = "equality"
    """Values that must be equal, and outputs and shapes that must be there."""


@frozen_dataclass
class Judgement:
    """The judgement of a tensor against its limit.

    Attributes:
        within: The verdict.
        limit: The limit, for people, e.g. ``abs <= 1e-05 or rel <= 1e-05 (elemwise)``.
        ratio: Error relative to the limit; above 1 is outside, infinite when no number says how far.
        basis: Source of the limit.
        allowed_by: Names of the explanations that allow the error, joined by a plus; empty where none has to.
    """

    within: bool
    limit: str
    ratio: float
    basis: Basis
    allowed_by: str = ""

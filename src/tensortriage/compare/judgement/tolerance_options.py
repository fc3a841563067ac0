"""The options by which a user says how far outputs may be off."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tensortriage.values.options import option, request

if TYPE_CHECKING:
    from tensortriage.compare.judgement.tolerance import PolygraphyTolerance

NUMBERS = "[OUT:]NUMBER..."
READ_NUMBERS = "tensortriage.inputs.syntax:parse_numbers"


def atol_field(text: str, **more: Any) -> Any:
    """Declare the absolute tolerance; the text says what holds without any."""
    return option("--atol --abs-tol", NUMBERS, text, default_factory=dict, read=READ_NUMBERS, **more)


def rtol_field() -> Mapping[str, float]:
    """Declare the relative tolerance."""
    text = "Relative tolerance, of |reference|."
    return option("--rtol --rel-tol", NUMBERS, text, default_factory=dict, read=READ_NUMBERS)


@request
class ToleranceOptions:
    """The user's own tolerances of outputs."""

    atol: Mapping[str, float] = atol_field("Absolute tolerance instead of the noise floor.")
    rtol: Mapping[str, float] = rtol_field()

    def value(self) -> "PolygraphyTolerance | None":
        """Return the tolerance; None without any, so that the noise floor judges."""
        from tensortriage.compare.judgement.tolerance import PolygraphyTolerance

        return PolygraphyTolerance(atol=self.atol, rtol=self.rtol) if self.atol or self.rtol else None

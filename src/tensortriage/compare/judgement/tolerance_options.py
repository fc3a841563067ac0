"""The options for a user's error limits of outputs."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from tensortriage.values.options import option, request

if TYPE_CHECKING:
    from tensortriage.compare.judgement.tolerance import PolygraphyTolerance, Tolerance

NUMBERS = "[OUT:]NUMBER..."
READ_NUMBERS = "tensortriage.inputs.syntax:parse_numbers"


def atol_field(text: str, **more: Any) -> Any:
    """Declare the absolute tolerance; the text names the default."""
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

    @classmethod
    def of(cls, given: object) -> "Tolerance":
        """Return a tolerance, which may be given as a number, or one for each output by name: absolute ones.

        Raises:
            TypeError: For anything else.
        """
        from tensortriage.compare.judgement.tolerance import PolygraphyTolerance

        if hasattr(given, "judge"):
            return cast("Tolerance", given)
        by_name: Mapping[str, Any] = given if isinstance(given, Mapping) else {"": given}
        if not all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in by_name.values()):
            raise TypeError("give a number, a dict from output to number, or an object with a method judge")
        return PolygraphyTolerance(atol={name: float(each) for name, each in by_name.items()}, rtol=0.0)

    def value(self) -> "PolygraphyTolerance | None":
        """Return the tolerance; None without any, so that the noise floor judges."""
        from tensortriage.compare.judgement.tolerance import PolygraphyTolerance

        return PolygraphyTolerance(atol=self.atol, rtol=self.rtol) if self.atol or self.rtol else None


def tolerance_list(given: object) -> "Sequence[Tolerance]":
    """Return several tolerances, one of which may be given alone; see `ToleranceOptions.of`."""
    return [ToleranceOptions.of(each) for each in (given if isinstance(given, (list, tuple)) else [given])]

"""The writer of 8-bit files for ``triage convert``: another package, whose options are those of its own class.

It registers that class under `GROUP`; without one, 8 bits are refused.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, cast

from tensortriage.errors import UsageError
from tensortriage.values.options import request
from tensortriage.values.registered import registered

if TYPE_CHECKING:
    from tensortriage.workflows.edits.convert_request import ConvertRequest

GROUP = "tensortriage.conversions"
"""Entry-point group of classes of options; the one named ``8-bits`` writes int8 and fp8e4m3."""
NAME = "8-bits"
EIGHT_BITS = ("int8", "fp8e4m3")


class Conversion(Protocol):
    """Options of writing a model in 8 bits."""

    def converted(self, wanted: "ConvertRequest", *, as_json: bool) -> bool:
        """Convert a model to 8 bits, where they are requested, and show the loss; return whether they were requested.

        Raises:
            UsageError: For options that contradict the requested format or each other.
        """
        ...


@request
class NoConversion:
    """The placeholder of the options where no package provides them."""

    def converted(self, wanted: "ConvertRequest", *, as_json: bool) -> bool:
        """Refuse 8 bits.

        Raises:
            UsageError: Where 8 bits are requested (``convert-format-missing``).
        """
        if wanted.precision is not None and wanted.precision.value in EIGHT_BITS:
            raise UsageError(
                f"no package that writes models in {wanted.precision.value} is installed",
                slug="convert-format-missing",
                cure="reinstall tensortriage",
            )
        return False


def conversion() -> Callable[..., Conversion]:
    """Return the class of the options of 8 bits."""
    point = registered(GROUP).get(NAME)
    return NoConversion if point is None else cast("Callable[..., Conversion]", point.load())

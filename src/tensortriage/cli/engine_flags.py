"""Polygraphy's flags of an engine, such as ``--fp16``: a class of options of the package that has the engine.

They apply to the ``--trt`` runner of ``run``, to ``convert --convert-to trt`` and to ``debug build``. The package
registers its class under `GROUP`; without one there are no such flags.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, cast

from tensortriage.errors import EngineMissing
from tensortriage.values.options import request
from tensortriage.values.registered import registered

if TYPE_CHECKING:
    from tensortriage.workflows.edits.convert_request import ConvertRequest

GROUP = "tensortriage.engine_flags"
"""Entry-point group of classes of options, by the name of the engine."""
NAME = "tensorrt"


class EngineFlags(Protocol):
    """Flags for the build of an engine."""

    def any_given(self, *but: str) -> str:
        """Return the name of a given flag, except those of the named fields; empty for none."""
        ...

    def formats(self) -> list[str]:
        """Return the weak formats that are allowed by a flag, the lowest first."""
        ...

    def words(self) -> dict[str, str]:
        """Return the options of the engine that the flags stand for.

        Raises:
            UsageError: For a value that has no counterpart.
        """
        ...

    def build(self, wanted: "ConvertRequest", precision: str, *, as_json: bool) -> None:
        """Build an engine file instead of writing a model, and show the result.

        Args:
            wanted: The model, the file to write, and the nodes to keep.
            precision: The format requested by name; may be empty.
            as_json: Whether stdout is for one document.

        Raises:
            TriageError: When it cannot be built, or an edit of the model is requested.
        """
        ...


@request
class NoFlags:
    """The placeholder of the flags where no package provides them."""

    def any_given(self, *but: str) -> str:
        """Return that none is given."""
        return ""

    def formats(self) -> list[str]:
        """Return no format."""
        return []

    def words(self) -> dict[str, str]:
        """Return no options."""
        return {}

    def build(self, wanted: "ConvertRequest", precision: str, *, as_json: bool) -> None:
        """Refuse to build.

        Raises:
            EngineMissing: Always (``engine-missing``).
        """
        raise EngineMissing(
            f"no package with the engine '{NAME}' is installed", slug="engine-missing", cure="reinstall tensortriage"
        )


def engine_flags() -> Callable[..., EngineFlags]:
    """Return the class of the flags."""
    point = registered(GROUP).get(NAME)
    return NoFlags if point is None else cast("Callable[..., EngineFlags]", point.load())

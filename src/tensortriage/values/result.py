"""A result in Python: one line in a console, a card in a notebook, plain data or a table of pandas for more."""

from collections.abc import Sequence
from typing import Any

from tensortriage.values.given import resolved
from tensortriage.values.serial import to_plain

_CARD = "tensortriage.report.formats.notebook:card"


def record(row: object) -> dict[str, Any]:
    """Return a dataclass as plain data."""
    found: Any = to_plain(row)
    return dict(found)


class Result:
    """Base of the results of commands, which are frozen dataclasses."""

    __slots__ = ()

    @property
    def in_short(self) -> str:
        """The result in a line."""
        raise NotImplementedError

    @property
    def records(self) -> Sequence[dict[str, Any]]:
        """The rows of `to_dataframe`, each by column."""
        return ()

    def to_dict(self) -> dict[str, Any]:
        """Return the result as dicts, lists, numbers and texts, as its JSON document holds it."""
        return record(self)

    def to_dataframe(self) -> Any:
        """Return the rows of the result as a ``pandas.DataFrame``.

        Raises:
            ImportError: Where pandas is not installed.
        """
        import pandas  # type: ignore[import-untyped] # nothing else needs it

        return pandas.DataFrame(list(self.records))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.in_short}>"

    def _repr_html_(self) -> str:
        made: str = resolved(_CARD)(self)
        return made

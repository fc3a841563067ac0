"""A table is stated once, as columns with a text for each row; a terminal, Markdown and a page draw any table.

A column without contents in any row is left out. The kind of its contents, its `Looks`, decides how each of the three
draws it: its justification, whether it gives way on a narrow terminal, whether it is a code span.
"""

import enum
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.values.grouping import grouped

T = TypeVar("T")

_NOTHING = ("", "-")


class Tone(enum.Enum):
    """Severity of a cell; the value is the word that style sheets use."""

    GOOD = "good"
    NOTICE = "notice"
    PROBLEM = "problem"
    UNSURE = "unsure"

    @property
    def sign(self) -> str:
        """One character that marks the tone without colours."""
        return {Tone.GOOD: "✓", Tone.NOTICE: "i", Tone.PROBLEM: "✗", Tone.UNSURE: "?"}[self]

    @property
    def label(self) -> str:
        """Short words for screen readers and plain text."""
        return {
            Tone.GOOD: "no problem found",
            Tone.NOTICE: "explained",
            Tone.PROBLEM: "problem found",
            Tone.UNSURE: "not decided",
        }[self]


class Looks(enum.Enum):
    """Kind of a column's contents."""

    TEXT = "text"
    NAME = "name"
    """Name of something in a file: a code span, or cut in the middle."""
    CODE = "code"
    """A command, or a place in source code: whole, as it can be copied."""
    OP = "op"
    QUIET = "quiet"
    NUMBER = "number"
    SENTENCE = "why"


@frozen_dataclass
class TableCell:
    """Contents of a cell; with a tone it is a judgement, with a link it leads to a page."""

    text: str
    tone: Tone | None = None
    link: str = ""


JUDGED = {True: TableCell("ok", Tone.GOOD), False: TableCell("fail", Tone.PROBLEM)}
"""Whether something is within its limit."""


@frozen_dataclass
class Column(Generic[T]):
    """A column.

    Attributes:
        title: A word or two.
        say: Returns the text of a row.
        looks: Kind of its contents.
        full: The title where there is room.
        beneath: For texts too long for a terminal: at most so many distinct ones follow the table there, each with
            the numbers of its rows. None for a column wherever the table is drawn.
    """

    title: str
    say: Callable[[T], str | TableCell]
    looks: Looks = Looks.TEXT
    full: str = ""
    beneath: int | None = None

    @property
    def full_title(self) -> str:
        """The title where there is room."""
        return self.full or self.title


@frozen_dataclass
class Table:
    """A table, ready to be drawn.

    Attributes:
        title: Heading.
        noun: Noun for its rows, to count those that are not shown.
        columns: The columns with contents.
        rows: A cell for each of them.
        notes: Sentences below the table, each with its subject.
    """

    title: str
    noun: str
    columns: Sequence[Column[Any]]
    rows: Sequence[Sequence[TableCell]]
    notes: Sequence[tuple[str, str]] = ()

    @classmethod
    def of(
        cls,
        title: str,
        noun: str,
        columns: Sequence[Column[T]],
        rows: Iterable[T],
        notes: Sequence[tuple[str, str]] = (),
    ) -> "Table":
        """Compute every cell; rows are numbered when some columns follow the table in a terminal."""
        cells = [[_cell(column.say(row)) for column in columns] for row in rows]
        kept = [index for index in range(len(columns)) if any(row[index].text not in _NOTHING for row in cells)]
        heads: list[Column[Any]] = [columns[index] for index in kept]
        drawn = [[row[index] for index in kept] for row in cells]
        if any(column.beneath for column in columns):
            heads.insert(0, Column("", str, Looks.NUMBER))
            drawn = [[TableCell(str(number)), *row] for number, row in enumerate(drawn, 1)]
        return cls(title, noun, heads, drawn, notes)

    def beneath(self, most: int) -> Iterator[tuple[str, str]]:
        """Yield the texts of columns that are too long for a terminal, with the rows that they belong to."""
        for index, column in enumerate(self.columns):
            texts = [row[index].text for row in self.rows[:most]] if column.beneath else []
            numbers = grouped((text, str(number)) for number, text in enumerate(texts, 1) if text)
            for text, who in list(numbers.items())[: column.beneath]:
                yield f"{', '.join(who)}, {column.title}", text


def _cell(said: str | TableCell) -> TableCell:
    return said if isinstance(said, TableCell) else TableCell(said)

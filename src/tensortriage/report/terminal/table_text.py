"""Any table as lines of a terminal, without Rich, which takes longer to import than a model takes to read.

Text passes through `printable` before its width is taken.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from types import MappingProxyType

from tensortriage.report.tables import Column, Looks, Table, TableCell, Tone
from tensortriage.report.terminal.lines import Line
from tensortriage.values.printable import printable
from tensortriage.values.text import count, shorten

TONE_STYLES: Mapping[Tone, str] = MappingProxyType(
    {Tone.GOOD: "green", Tone.NOTICE: "cyan", Tone.PROBLEM: "bold red", Tone.UNSURE: "yellow"}
)
_STYLES = {Looks.OP: "bold", Looks.QUIET: "dim"}
_GIVES_WAY = {Looks.NAME: 3, Looks.QUIET: 2, Looks.SENTENCE: 2}
"""Weights by which columns share the room next to those of fixed width."""

_LONGEST = {Looks.OP: 18}
_LONGEST_CELL = 60
_NARROWEST = 8
_GAP = "  "


def table_lines(table: Table, *, width: int = 0, most: int | None = None, indent: str = "  ") -> Iterator[Line]:
    """Yield the titles, where there are any, and the rows.

    Args:
        table: The table.
        width: Columns of the terminal, which the lines fit; 0 for lines as long as they are.
        most: Rows that are drawn.
        indent: Prefix of every line.
    """
    if not table.rows:
        return
    places = [place for place, column in enumerate(table.columns) if column.beneath is None]
    columns = [table.columns[place] for place in places]
    texts = [[_text(row[place], column, width) for place, column in zip(places, columns, strict=True)]
             for row in table.rows[:most]]  # fmt: skip
    widths = _widths(columns, texts, width - len(indent))
    if any(column.title for column in columns):
        yield _line([(column.title, "dim") for column in columns], columns, widths, indent)
    for row, cells in zip(table.rows, texts, strict=False):
        styles = [_style(row[place], column) for place, column in zip(places, columns, strict=True)]
        yield _line(list(zip(cells, styles, strict=True)), columns, widths, indent)


def listing(rows: Iterable[Sequence[str]], *looks: Looks, indent: str = "  ") -> Iterator[Line]:
    """Yield rows without titles, a column for each of the looks; nothing for no row."""
    columns = [Column("", itemgetter(place), look) for place, look in enumerate(looks)]
    yield from table_lines(Table.of("", "", columns, rows), indent=indent)


def more_line(table: Table, most: int, where: str, indent: str = "  ") -> Iterator[Line]:
    """Yield how many rows are not shown, if any, and where they are."""
    if len(table.rows) > most:
        yield [(f"{indent}... and {count(len(table.rows) - most, table.noun)} more{where}", "dim")]


def _columns_of(text: str) -> int:
    """Return how many columns text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _text(cell: TableCell, column: Column[object], width: int) -> str:
    text = printable(cell.text)
    if cell.tone is Tone.PROBLEM:
        text = text.upper()  # seen without colours as well
    return shorten(text, _LONGEST.get(column.looks, width or _LONGEST_CELL))


def _style(cell: TableCell, column: Column[object]) -> str:
    return TONE_STYLES[cell.tone] if cell.tone else _STYLES.get(column.looks, "")


def _widths(columns: Sequence[Column[object]], texts: Sequence[Sequence[str]], room: int) -> list[int]:
    """Return how wide columns are: as their content, or less where they give way."""
    widths = [
        max(_columns_of(column.title), *(_columns_of(row[place]) for row in texts))
        for place, column in enumerate(columns)
    ]
    weights = {place: _GIVES_WAY[column.looks] for place, column in enumerate(columns) if column.looks in _GIVES_WAY}
    left = room - len(_GAP) * len(columns) - sum(width for place, width in enumerate(widths) if place not in weights)
    if room > 0 and sum(widths[place] for place in weights) > left:
        for place, weight in weights.items():
            widths[place] = max(_NARROWEST, min(widths[place], left * weight // sum(weights.values())))
    return widths


def _line(
    cells: Sequence[tuple[str, str]], columns: Sequence[Column[object]], widths: Sequence[int], indent: str
) -> Line:
    spans = []
    for (text, style), column, width in zip(cells, columns, widths, strict=True):
        shown = text if _columns_of(text) <= width else shorten(text, width)
        blank = " " * (width - _columns_of(shown))
        spans.append((blank + shown if column.looks is Looks.NUMBER else shown + blank, style))
    while len(spans) > 1 and not spans[-1][0].strip():
        spans.pop()
    last, style = spans[-1]
    gaps = [(text + _GAP, style) for text, style in spans[:-1]]
    return [(indent, ""), *gaps, (last.rstrip(), style)]

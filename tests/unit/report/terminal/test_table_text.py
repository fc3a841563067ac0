import pytest
from rich.cells import cell_len

from tensortriage.report.tables import Column, Looks, Table, TableCell, Tone
from tensortriage.report.terminal.lines import plain
from tensortriage.report.terminal.table_text import more_line, table_lines

LONG = "encoder." * 20 + "Softmax"


def table(rows, *looks, titles=("first", "second", "third")):
    columns = [Column(title, lambda row, place=place: row[place], look)
               for place, (title, look) in enumerate(zip(titles, looks, strict=False))]  # fmt: skip
    return Table.of("t", "row", columns, rows)


def drawn(made, **options):
    return [plain(line) for line in table_lines(made, **options)]


def test_numbers_are_justified_to_the_right_and_all_else_to_the_left():
    made = table([("a", "1"), ("bb", "100")], Looks.TEXT, Looks.NUMBER)
    assert drawn(made) == ["  first  second", "  a           1", "  bb        100"]


def test_wide_characters_take_two_columns():
    made = table([("名前", "1"), ("ab", "2")], Looks.NAME, Looks.NUMBER, titles=("", ""))
    assert drawn(made, indent="") == ["名前  1", "ab    2"]


def test_lines_have_no_blanks_at_their_ends():
    made = table([("a", "1", "x"), ("b", "", "")], Looks.TEXT, Looks.NUMBER, Looks.TEXT, titles=("", "", ""))
    assert drawn(made) == ["  a  1  x", "  b"]


def test_without_titles_there_is_no_line_of_them():
    assert drawn(table([("a", "1")], Looks.TEXT, Looks.NUMBER, titles=("", ""))) == ["  a  1"]


@pytest.mark.parametrize("width", [40, 60, 100])
def test_names_give_way_and_figures_do_not(width):
    made = table([(LONG, "12345678", LONG)], Looks.NAME, Looks.NUMBER, Looks.SENTENCE)
    lines = drawn(made, width=width)
    assert width - 6 <= max(map(cell_len, lines)) <= width
    assert "12345678" in lines[1]
    assert lines[1].count("Softmax") == (1 if width == 40 else 2)
    first, _, third = (len(part) for part in lines[1].split())
    assert first > third, "names have more of the room than sentences"


def test_without_a_width_a_line_is_as_long_as_it_is_and_a_cell_has_sixty_columns():
    (title, line) = drawn(table([(LONG, LONG, LONG)], *[Looks.NAME] * 3), indent="")
    assert [len(cell) for cell in line.split()] == [60] * 3
    assert title.split() == ["first", "second", "third"]


def test_problems_are_loud_without_colours_as_well():
    made = table(
        [(TableCell("outside", Tone.PROBLEM), "x"), (TableCell("within", Tone.GOOD), "y")], Looks.TEXT, Looks.OP
    )
    _, loud, quiet = table_lines(made)
    assert loud[1:] == [("OUTSIDE  ", "bold red"), ("x", "bold")]
    assert quiet[1:] == [("within   ", "green"), ("y", "bold")]


def test_nothing_in_a_cell_acts():
    assert drawn(table([("a\x1b[2J\n",)], Looks.NAME)) == ["  first", "  a\\x1b[2J\\n"]


def test_rows_that_are_not_drawn_are_counted():
    made = table([("a",)] * 5, Looks.TEXT)
    assert len(drawn(made, most=3)) == 4
    assert [plain(line) for line in more_line(made, 3, ": --json")] == ["  ... and 2 rows more: --json"]
    assert not list(more_line(made, 5, ""))

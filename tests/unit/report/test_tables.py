from tensortriage.report.tables import Column, Looks, Table, TableCell, Tone

COLUMNS = (
    Column("name", lambda row: row[0], Looks.NAME),
    Column("size", lambda row: row[1], Looks.NUMBER, "size in bytes"),
    Column("why", lambda row: row[2], Looks.SENTENCE, beneath=2),
    Column("file", lambda row: row[3], beneath=0),
)
ROWS = [("a", "1", "late", "x"), ("b", "-", "early", ""), ("c", "-", "late", "x"), ("d", "-", "never", "")]


def texts(table):
    return [[cell.text for cell in row] for row in table.rows]


def test_columns_that_say_nothing_are_left_out():
    assert [column.title for column in Table.of("t", "row", COLUMNS[:2], ROWS).columns] == ["name", "size"]
    assert [column.title for column in Table.of("t", "row", COLUMNS[:2], ROWS[1:]).columns] == ["name"]
    assert texts(Table.of("t", "row", COLUMNS[:2], ROWS[1:2])) == [["b"]]
    assert not Table.of("t", "row", COLUMNS[:2], []).columns


def test_the_title_where_there_is_room_is_the_full_one():
    assert [column.full_title for column in COLUMNS] == ["name", "size in bytes", "why", "file"]


def test_a_cell_is_text_or_a_judgement():
    judged = Table.of("t", "row", [Column("", lambda row: TableCell(row[0], Tone.PROBLEM))], ROWS[:1])
    assert judged.rows == [[TableCell("a", Tone.PROBLEM)]]


def test_rows_are_numbered_when_a_column_follows_the_table():
    table = Table.of("t", "row", COLUMNS, ROWS)
    assert [row[0] for row in texts(table)] == ["1", "2", "3", "4"]
    assert list(table.beneath(most=4)) == [("1, 3, why", "late"), ("2, why", "early")]
    assert list(table.beneath(most=1)) == [("1, why", "late")]
    assert texts(Table.of("t", "row", (COLUMNS[0], COLUMNS[3]), ROWS))[0] == ["a", "x"]

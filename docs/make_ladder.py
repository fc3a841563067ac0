"""Write the table of questions in docs/diagnose.md: order and verdicts are the ladder's, the words the page's.

How a question is answered is prose, and stands on the page alone; a new question gets an empty cell to be filled.
"""

from pathlib import Path

from tensortriage.diagnose.ladder import ladder

PAGE = Path(__file__).resolve().parents[1] / "docs/diagnose.md"
BEGIN, END = "<!-- ladder: made by docs/make_ladder.py -->", "<!-- end of ladder -->"
HEAD = "| question | how it is answered | verdict it may end with |\n|---|---|---|\n"


def page() -> str:
    """Return the page with its table made again."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    told = how()
    rows = []
    for rung in dict.fromkeys(ladder()):
        ends = ", ".join(f"`{kind.value}`" for kind in rung.ends)
        rows.append(f"| {rung.title} | {told.get(rung.title, '')} | {ends} |\n")
    return f"{before}{BEGIN}\n{HEAD}{''.join(rows)}{END}{rest.partition(END)[2]}"


def how() -> dict[str, str]:
    """Return how each question of the page's table is answered."""
    table = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    rows = ([cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines() if line[:2] == "| ")
    return {cells[0]: cells[1] for cells in rows}


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

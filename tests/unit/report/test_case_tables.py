"""Each table is stated once: whoever draws it, the same rows say the same."""

import dataclasses
import html
import re
from collections.abc import Callable

import pytest
from markdown_it import MarkdownIt

from tensortriage.diagnose.state.layer_rows import OutputRow, Outputs
from tensortriage.diagnose.state.verdict import Culprit, ShapeRow
from tensortriage.model.provenance.origin import NodeOrigin
from tensortriage.report import case_tables
from tensortriage.report.document import Report
from tensortriage.report.formats import console, markdown
from tensortriage.report.formats.html import render as render_page
from tensortriage.report.tables import Looks, Table
from tensortriage.runs.analyses.ranges import FormatMisfit, RangeRow, Ranges
from unit.report.samples import healthy_match, local_fault

SHAPES = (
    ShapeRow("batch=1", "match", "logits", 1e-6, 0.5),
    ShapeRow("batch=8", "wrong", "logits", 0.25, 310.0),
    ShapeRow("batch=16", "engine-crash", message="the process died"),
)
RANGES = Ranges(
    rows=(
        RangeRow("w", "/Conv", "Conv", constant=True, max_abs=1e5, min_abs=1.0,
                 misfits=(FormatMisfit("weight-beyond-range", "fp16", True, 1.0, "has 3 weights beyond 65504"),)),
        RangeRow("v", "/Pow", "Pow", constant=False, max_abs=70000.0, min_abs=1.0,
                 misfits=(FormatMisfit("sum-beyond-range", "fp16", False, 1.0, "adds up to 70000"),)),
    ),
    precision="fp16",
)  # fmt: skip


SPANS = (Looks.NAME, Looks.OP, Looks.CODE)


def report() -> Report:
    found = local_fault(9, culprits=(2, 6))
    first, second = found.verdict.culprits
    origin = NodeOrigin("net.mlp_1", "GELU", "my_net.py", 281)
    two = (dataclasses.replace(first, anatomy=("every 4th element", "all in row 3"), origin=origin), second)
    return dataclasses.replace(
        found, verdict=dataclasses.replace(found.verdict, culprits=two, shapes=SHAPES), ranges=RANGES
    )


def of_markdown(text: str, table: Table) -> list[list[str]]:
    parser = MarkdownIt("commonmark").enable("table")
    section = text.split(f"### {table.title}\n")[1].split("\n### ")[0]
    return tags(parser.render(section))


def of_page(text: str, table: Table) -> list[list[str]]:
    section = re.split(rf"<h2 [^>]*>{re.escape(table.title)} ", text)[1].split("</table>")[0]
    return tags(section)


def tags(text: str) -> list[list[str]]:
    rows = re.findall("<tr>(.*?)</tr>", text, re.DOTALL)
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in rows]
    return [[html.unescape(re.sub("<[^>]*>", "", cell)).strip() for cell in row] for row in cells]


def alike(rows: list[list[str]]) -> list[list[str]]:
    """Return rows without what is a page's own: signs of judgements, the sign for times, capitals, a spoken title."""
    head, *rest = [[re.sub("^[✓✗] ", "", cell).replace("×", "x").lower() for cell in row] for row in rows]
    return [["" if cell == "state" else cell for cell in head], *rest]


def stated(table: Table) -> list[list[str]]:
    return [
        [column.full_title for column in table.columns],
        *([cell.text or "-" for cell in row] for row in table.rows),
    ]


@pytest.mark.parametrize("of", [case_tables.culprits, case_tables.outputs, case_tables.ranges, case_tables.shapes])
def test_markdown_and_page_have_every_row_and_column_and_the_terminal_those_that_fit(
    of: Callable[[Report], Table],
) -> None:
    table = of(report())
    rows = stated(table)
    assert len(rows) > 1
    text = markdown.render(report())
    assert of_markdown(text, table) == rows
    names = [row[place].text for row in table.rows for place in range(len(row)) if table.columns[place].looks in SPANS]
    assert all(f"`{name}`" in text for name in names if name), "names can be searched for as they are"
    assert alike(of_page(render_page(report()), table)) == alike(rows)
    if table.title.startswith("What"):
        return  # ranges are left to the page
    text = console.render(report()).split(f"\n{table.title}\n")[1].split("\n\n")[0]
    for row in table.rows:
        for cell, column in zip(row, table.columns, strict=True):
            assert cell.text.lower() in text.lower() or column.beneath == 0


def test_an_output_is_told_with_its_judgement_and_what_rounding_predicts_if_that_is_no_floor() -> None:
    rows = (
        OutputRow("a", "float32", (2,), 30.0, 0.5, 0.03, 0.01, True, predicted=0.01),
        OutputRow("b", "float32", (2,), 20.0, 0.5, 0.1, 0.01, False, 7, "real[3]", predicted=0.2),
    )
    found = case_tables.outputs(dataclasses.replace(healthy_match(), outputs=Outputs(rows)))
    assert stated(found) == [
        ["", "output", "type", "SQNR dB", "relative RMS error", "noise floor", "predicted by rounding", "max abs error",
         "NaN/Inf", "worst feed"],
        ["outside", "b", "float32 [2]", "20.0", "0.1", "0.01", "0.2", "0.5", "7", "real[3]"],
        ["within", "a", "float32 [2]", "30.0", "0.03", "0.01", "-", "0.5", "-", "-"],
    ]  # fmt: skip


def test_what_is_said_of_the_error_follows_the_outputs() -> None:
    found = local_fault(9, culprits=(2,))
    row = dataclasses.replace(found.outputs.rows[0], needs_sentence=True, words="has 3 of 8 elements unequal")
    verdict = dataclasses.replace(found.verdict, anatomy=("all in row 3",))
    notes = case_tables.outputs(dataclasses.replace(found, verdict=verdict, outputs=Outputs((row,)))).notes
    assert [label for label, _ in notes] == ["", "error of the worst"]
    assert "has 3 of 8 elements unequal" in notes[0][1]


def test_a_culprit_of_which_nothing_was_measured_has_no_figures() -> None:
    bare = Report(dataclasses.replace(healthy_match().verdict, culprits=(Culprit("n", "Pow", "v"),)))
    assert stated(case_tables.culprits(bare)) == [["", "op", "node"], ["1", "Pow", "n"]]

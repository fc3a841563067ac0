import math

import pytest

from tensortriage.report.terminal.lines import plain
from tensortriage.report.terminal.table_text import table_lines
from tensortriage_steps.shown_steps import MOST_ROWS, MOST_STEPS, remarks_of, render_steps, steps_table, telling
from tensortriage_steps.steps_report import FreeRun, StepDiagnosis, StepRow, StepsReport, StepValue

HOSTILE = "<script>alert(1)</script>\x1b"


def report(rows, **more):
    given = {"model": HOSTILE, "reference": "a", "target": HOSTILE, "inputs": "random", "carried": (HOSTILE,),
             "verdict": "match", "summary": HOSTILE, "rows": tuple(rows), "notes": (HOSTILE,),
             "next": (HOSTILE,)}  # fmt: skip
    return StepsReport(**(given | more))


def value(ratio=0.5, name=HOSTILE):
    return StepValue(name, 1e-7, ratio, within=ratio <= 1)


def row(step, *values, **more):
    return StepRow(step, step + 1, values or (value(),), **more)


def heads(rows):
    return [column.title for column in steps_table(rows).columns]


def test_nothing_of_a_model_is_taken_for_markup():
    made = render_steps(report([row(0)]))
    assert made.count("<script") == made.count("wireCopyButtons();") == 1
    assert "\x1b" not in made
    assert "&lt;script&gt;" in made
    assert 'data-copy="&lt;script&gt;' in made


def test_columns_without_figures_are_left_out():
    assert heads([row(0)]) == ["step", "length", "", "worst output", "rel. RMS", "of limit"]
    scored = row(0, divergence=1e-9, top_agreement=1.0, margin=math.inf, drifted=(value(0.25), value(0.75)))
    assert heads([scored])[6:] == ["KL nats", "top 5", "margin", "own states"]
    assert [cell.text for cell in steps_table([scored]).rows[0]][6:] == ["1e-09", "100 %", "Inf", "0.75"]


def test_of_a_step_the_first_wrong_output_is_told_else_the_one_nearest_to_its_limit():
    right = row(0, value(0.1, "a"), value(0.9, "b"))
    wrong = row(1, value(0.1, "a"), value(2.0, "b"), value(3.0, "c"))
    lines = [plain(line).split() for line in table_lines(steps_table([right, wrong]))][1:]
    assert lines == [["0", "1", "right", "b", "1e-07", "0.9"], ["1", "2", "WRONG", "b", "1e-07", "2"]]


@pytest.mark.parametrize(("wrong", "near"), [((), 7), ((5, 20), 33), (tuple(range(3, 30)), 1)])
def test_of_many_steps_the_wrong_ones_the_ends_and_the_nearest_to_their_limits_are_listed(wrong, near):
    rows = [row(step, value(2.0 if step in wrong else 0.9 if step == near else 0.5)) for step in range(40)]
    shown = [each.step for each in telling(rows)]
    assert len(shown) == MOST_STEPS
    assert shown == sorted(shown)
    assert {0, 39, *wrong[: MOST_STEPS - 2]} <= set(shown)
    assert near in shown or len(wrong) > MOST_STEPS - 3
    assert telling(rows[:MOST_STEPS]) == rows[:MOST_STEPS]


def test_a_page_has_every_step_up_to_what_a_reader_goes_through():
    made = render_steps(report(row(step) for step in range(MOST_ROWS + 3)))
    assert made.count("✓ right") == MOST_ROWS
    assert "… and 3 steps more in the data." in made


def test_without_steps_there_is_no_table():
    broken = report([], reference="", verdict="fault", first=1, diagnosis=StepDiagnosis("local-fault", *[""] * 7))
    made = render_steps(broken)
    assert "<table>" not in made
    assert 'href="step-1/report.html"' in made
    assert "tone-problem" in made


def test_what_both_generate_alone_is_a_remark():
    free = FreeRun(((1,), (2,)), ((1,), (3,)), first=1, margin=0.5, tie=True, ahead=0.01, moved=0.02)
    remarks = list(remarks_of(report([], free=free, stopped="no more", notes=("n",))))
    assert remarks[0].startswith("alone, the tokens part at step 1: 2 and 3; ")
    assert remarks[0].endswith(" 0.01 above that of the second, and healthy engines move the two by up to 0.02: a tie")
    assert remarks[1:] == ["note: the reference stops: no more", "note: n"]

import math

from tensortriage.report.steps_page import MOST_ROWS, StepsPage, render_steps
from tensortriage.report.terminal.steps_text import StepLine

HOSTILE = "<script>alert(1)</script>\x1b"


def page(lines, **more):
    given = {"model": HOSTILE, "reference": "a", "target": HOSTILE, "inputs": "random", "carried": [HOSTILE],
             "verdict": "match", "summary": HOSTILE, "exit_code": 0, "lines": lines, "remarks": [HOSTILE],
             "next": [HOSTILE], "report": "", "format": "f"}  # fmt: skip
    return render_steps(StepsPage(**(given | more)))


def line(step, **more):
    given = {"step": step, "length": step + 1, "worst": HOSTILE, "error": 1e-7, "ratio": 0.5, "divergence": None,
             "agreement": None, "margin": None, "drift": None, "wrong": False}  # fmt: skip
    return StepLine(**(given | more))


def test_nothing_of_a_model_is_taken_for_markup():
    made = page([line(0)])
    assert "<script" not in made
    assert "\x1b" not in made
    assert "&lt;script&gt;" in made


def test_columns_without_figures_are_left_out():
    assert "KL, nats" not in page([line(0)])
    assert "On own states" not in page([line(0)])
    both = page([line(0, divergence=1e-9, agreement=1.0, margin=math.inf, drift=0.25)])
    assert "KL, nats" in both
    assert "On own states" in both


def test_a_page_has_every_step_up_to_what_a_reader_goes_through():
    made = page([line(step) for step in range(MOST_ROWS + 3)])
    assert made.count("✓ right") == MOST_ROWS
    assert "The other 3 steps are in steps.json." in made


def test_without_steps_there_is_no_table():
    made = page([], reference="", exit_code=1, report="step-1/report.html")
    assert "<table>" not in made
    assert 'href="step-1/report.html"' in made
    assert "tone-problem" in made

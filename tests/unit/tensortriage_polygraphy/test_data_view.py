"""A data file as text and as JSON: what is counted, what is shown of each tensor, and how much of it."""

import dataclasses
import json
import math

import numpy as np
import pytest

from tensortriage.inputs.files.accuracy_results import AccuracyEntry, AccuracyPair, AccuracyResult
from tensortriage.inputs.files.data_file import Iteration, Kind
from tensortriage.inputs.files.save_data import save
from tensortriage.report.terminal.lines import plain
from tensortriage_polygraphy.data_view import DataView, data_lines, show_accuracy, to_document

ODD = np.float32([1, 2, math.nan, -math.inf])


def view(path, **given):
    """Return what is asked of a file: nothing but the summary of its first iteration, unless it says otherwise."""
    usual = DataView(path=path, everything=False, show_values=False, histogram=False, num_items=3, line_width=75)
    return dataclasses.replace(usual, **given)


def text(path, **given):
    """Return the lines that are shown."""
    return [plain(line) for line in data_lines(view(path, **given))]


def tensors(path, **given):
    """Return the tensors of the first iteration of the first series, as the document has them."""
    found = json.loads(to_document(view(path, **given)))["series"][0]["iterations"][0]["tensors"]
    return {tensor["name"]: tensor for tensor in found}


@pytest.fixture
def odd(tmp_path):
    """One iteration with numbers of many kinds."""
    path = tmp_path / "odd.npz"
    np.savez(path, x=ODD, empty=np.zeros((0, 2), np.float32), word=np.array(["a", "b"]), c=np.complex64([1 + 2j]))
    return path


@pytest.fixture
def two(tmp_path):
    """Two iterations of two runners, with the time of each."""
    path = tmp_path / "two.json"
    rows = [Iteration({"y": np.float32([number])}, seconds=0.5 + number) for number in range(2)]
    save(path, [("ort", rows), ("ov", rows)], kind=Kind.OUTPUTS)
    return path


def test_the_first_iteration_is_shown_and_the_others_are_told_of(two):
    lines = text(two)
    assert next(line for line in lines if "2 iterations of outputs of" in line).endswith("of ort (json)")
    assert sum(line.startswith("iteration 0, 0.5 s") for line in lines) == 2
    assert not any(line.startswith("iteration 1") for line in lines)
    assert lines.count("... the others with --all") == 2


def test_every_iteration_is_shown_where_that_is_asked_for(two):
    lines = text(two, everything=True)
    assert sum(line.startswith("iteration 1, 1.5 s") for line in lines) == 2
    assert not any("--all" in line for line in lines)
    document = json.loads(to_document(view(two, everything=True)))
    assert (document["format"], document["kind"], document["data_format"]) == ("tensortriage.data/1", "outputs", "json")
    assert [(series["runner"], series["iterations_in_file"]) for series in document["series"]] == [
        ("ort", 2),
        ("ov", 2),
    ]
    assert [row["seconds"] for row in document["series"][0]["iterations"]] == [0.5, 1.5]


def test_one_iteration_has_no_number(odd):
    lines = text(odd)
    assert "1 iteration of inputs (npz)" in lines[0]
    assert not any(line.startswith("iteration") or "--all" in line for line in lines)
    (row,) = [line for line in lines if line.lstrip().startswith("x ")]
    assert row.split()[1:3] == ["float32", "[4]"]
    assert row.split()[-2:] == ["1", "1"]  # NaN, Inf


def test_what_is_no_number_stands_out(odd):
    styles = {line[1][0].strip(): [piece[1] for piece in line[-2:]] for line in data_lines(view(odd)) if len(line) > 2}
    assert (styles["x"], styles["c"]) == (["bold red"] * 2, [""] * 2)


def test_the_document_has_figures_of_finite_numbers_and_values_on_request(odd):
    found = tensors(odd)
    figures = found["x"]["figures"]
    assert (figures["minimum"], figures["maximum"], figures["mean"]) == (1, 2, 1.5)
    assert (found["x"]["nan"], found["x"]["inf"], found["x"]["shape"]) == (1, 1, [4])
    assert found["empty"]["figures"] is None
    assert not {"values", "histogram"} & set(found["x"])
    shown = tensors(odd, show_values=True, histogram=True)
    assert shown["word"]["values"] == ["a", "b"]
    assert shown["c"]["values"] == [[1.0, 2.0]]
    assert shown["x"]["values"][:2] == [1.0, 2.0]
    assert sum(shown["x"]["histogram"]["counts"]) == 2


def test_statistics_say_where_the_extremes_are_and_what_is_no_number(odd):
    lines = text(odd, histogram=True)
    (x,) = [line for line in lines if line.startswith("x [dtype=float32")]
    assert "| NaN=1, Inf=1, mean=1.5, std-dev=0.5, median=1.5, min=1 at " in x
    (empty,) = [line for line in lines if line.startswith("empty ")]
    assert empty.endswith("]")


def test_bars_of_a_histogram_are_as_long_as_their_share_of_the_largest(tmp_path):
    np.savez(tmp_path / "h.npz", x=np.float32([0] * 20 + [1] * 5))
    lines = text(tmp_path / "h.npz", histogram=True)
    assert [(line.split()[3], line.count("#")) for line in lines if "#" in line] == [("20", 40), ("5", 10)]


def test_infinities_alone_are_told_without_figures(tmp_path):
    np.savez(tmp_path / "i.npz", x=np.float32([math.inf]))
    assert text(tmp_path / "i.npz", show_values=True)[1].endswith("| Inf=1")


@pytest.mark.parametrize(
    ("items", "width", "count", "rows"), [(1, 75, 2, 1), (2, 75, 4, 1), (-1, -1, 2000, 1), (-1, 75, 2000, None)]
)
def test_as_many_values_are_shown_as_asked_for(tmp_path, items, width, count, rows):
    np.savez(tmp_path / "v.npz", x=np.zeros(2000, np.int64))
    values = text(tmp_path / "v.npz", show_values=True, num_items=items, line_width=width)[2:]
    assert sum(line.count("0") for line in values) == count
    assert len(values) == rows if rows else len(values) > 50
    assert all(line.startswith("  ") for line in values)


def test_saved_verdicts_are_shown_as_they_were_saved(capsys):
    entry = AccuracyEntry("L2Result", {"l2_norm": 2.0}, {"threshold": 1.0}, None)
    result = AccuracyResult((AccuracyPair(("a", "b"), ({"y": entry},)),))
    show_accuracy([result], as_json=True)
    assert json.loads(capsys.readouterr().out)["passed"] is False
    show_accuracy([result], as_json=False)
    assert "y" in capsys.readouterr().out

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import pytest

from tensortriage.diagnose.state.layer_rows import LayerRow, Layers, OutputRow, Outputs
from tensortriage.diagnose.state.verdict import Culprit, Verdict
from tensortriage.errors import StoreError
from tensortriage.report.document import Report
from tensortriage.values.serial import dump, from_json, to_json
from unit.report.samples import healthy_match, local_fault, range_overflow, write_case


def output(name: str = "y", *, error: float = 0.1, within: bool = False, bad: int = 0) -> OutputRow:
    return OutputRow(name, "float32", (1,), 20.0, error, error, 0.01, within, bad)


def report(*outputs: OutputRow, influence: float | None = None) -> Report:
    culprit = Culprit("n", "Pow", "v", influence=influence)
    return Report(Verdict("local-fault", 1.0, "", (culprit,)), outputs=Outputs(outputs))


def share(document: Report) -> float | None:
    return document.explained_share(document.verdict.culprits[0])


@pytest.mark.parametrize("original", [healthy_match(), range_overflow(), local_fault(30, culprits=(3,))])
def test_a_case_directory_gives_the_report_that_was_written(original: Report, tmp_path: Path) -> None:
    write_case(original, tmp_path)
    # Compared as JSON because NaN is not equal to itself.
    assert to_json(Report.load(tmp_path)) == to_json(original)


def test_everything_but_the_verdict_is_optional(tmp_path: Path) -> None:
    dump(Verdict("match", 1.0, "fine"), tmp_path / "verdict.json")
    loaded = Report.load(tmp_path)
    assert loaded.case is None
    assert loaded.layers.rows == ()
    assert loaded.outputs.rows == ()


def test_the_json_form_reads_back() -> None:
    original = local_fault(30, culprits=(3,))
    assert from_json(to_json(original), Report) == original


@pytest.mark.parametrize(
    ("files", "slug"),
    [
        (None, "case-missing"),
        ({}, "verdict-missing"),
        ({"verdict.json": "{"}, "json-invalid"),
        ({"verdict.json": '{"format": "tensortriage.verdict/9"}'}, "format-unknown"),
        ({"verdict.json": to_json(Verdict("sideways", 1.0, ""))}, "verdict-unknown"),
        ({"verdict.json": to_json(Verdict("match", 1.0, "")), "layers.json": "[]"}, "format-unknown"),
        ({"verdict.json": to_json(Verdict("match", 1.0, "")), "case.json": "\x00"}, "json-invalid"),
    ],
)
def test_bad_cases_are_named(files: dict[str, str] | None, slug: str, tmp_path: Path) -> None:
    folder = tmp_path / "case"
    if files is not None:
        folder.mkdir()
        for name, content in files.items():
            (folder / name).write_text(content)
    with pytest.raises(StoreError) as caught:
        Report.load(folder)
    assert caught.value.slug == slug
    assert caught.value.cure
    assert str(folder) in caught.value.message


def test_explained_share_is_influence_over_the_worst_output_error() -> None:
    assert share(report(output(error=0.05), output(error=0.2), influence=0.15)) == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (report(output(error=0.1), influence=0.3), 1.0),  # errors of ops may cancel: never above all of it
        (report(output(error=0.1), influence=None), None),
        (report(output(error=0.1), influence=math.inf), None),
        (report(output(error=0.1, bad=3), influence=0.1), None),  # an RMS over what is left after NaN says nothing
        (report(output(error=math.nan), influence=0.1), None),
        (report(output(error=0.0), influence=0.1), None),
        (report(influence=0.1), None),
    ],
)
def test_explained_share_where_it_has_an_edge(document: Report, expected: float | None) -> None:
    assert share(document) == expected


def test_worst_outputs_come_first() -> None:
    rows = (
        output("fine", error=0.5, within=True),
        output("bad", error=0.1),
        output("nan", error=0.0, bad=1),
        output("worse", error=0.2),
        output("unknown", error=math.nan),
    )
    assert [row.name for row in report(*rows).worst_outputs()] == ["nan", "unknown", "worse", "bad", "fine"]


@pytest.mark.parametrize(
    ("measured", "expected"),
    [({}, False), ({"floor": 0.1, "max_abs_reference": 3.0}, False), ({"in_context_error": 0.0}, True),
     ({"local_error": math.nan}, True), ({"nonfinite_target": 1}, True)],
)  # fmt: skip
def test_predictions_alone_are_no_layer_errors(measured: dict[str, Any], expected: bool) -> None:
    document = dataclasses.replace(report(), layers=Layers((LayerRow("a", "a", "Add", **measured),)))
    assert document.has_layer_errors is expected


@pytest.mark.parametrize(("said", "shown"), [(0.5, 0.5), (7.0, 1.0), (-1.0, 0.0), (math.nan, 0.0)])
def test_confidence_stays_within_its_range(said: float, shown: float) -> None:
    assert Report(Verdict("match", said, "")).confidence == shown


def test_unknown_fields_of_a_newer_minor_version_are_ignored(tmp_path: Path) -> None:
    verdict = json.loads(to_json(Verdict("match", 1.0, "")))
    (tmp_path / "verdict.json").write_text(json.dumps(verdict | {"mood": "calm"}))
    assert Report.load(tmp_path).verdict.verdict == "match"

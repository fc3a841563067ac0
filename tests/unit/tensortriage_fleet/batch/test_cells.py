"""The table of a batch: which cells there are, their command lines, and what is expected of each."""

from pathlib import Path

import msgspec
import pytest

from tensortriage.errors import DataError
from tensortriage_fleet.batch.batch_file import BatchFile
from tensortriage_fleet.batch.cells import cells

PLAIN = {
    "models": {"net": {"file": "net.onnx"}, "other": {"file": "other.onnx", "feeds": ["b*"], "options": ["--seed", 3]}},
    "feeds": {"a": {"inputs": ["a.npz", "b.npz"]}, "b": {}},
    "targets": {"x": {"engine": "onnxruntime"}, "y": {"engine": "emulate:precision=fp16", "optional": True}},
    "commands": {"run": {"run": "run"}, "lint": {"run": "check lint", "options": ["--no-engine"]}},
}


def made(**changes):
    return cells(msgspec.convert({**PLAIN, **changes}, BatchFile), Path("batch.yaml"))


def test_commands_are_crossed_with_what_they_take():
    assert [cell.name for cell in made()] == [
        "net / a / x / run",
        "net / a / y / run",
        "net / b / x / run",
        "net / b / y / run",
        "net / lint",
        "other / b / x / run",
        "other / b / y / run",
        "other / lint",
    ]


def test_a_cell_is_a_command_line():
    lines = {cell.name: " ".join(cell.words) for cell in made(reference="float64")}
    assert lines["net / a / x / run"] == ("run net.onnx --target onnxruntime --reference float64 --inputs a.npz b.npz")
    assert lines["other / lint"] == "check lint other.onnx --no-engine --seed 3"


def test_a_model_without_feeds_gets_made_up_data():
    found = made(feeds={}, models={"net": {"file": "net.onnx"}}, exclude=[{"target": "y"}])
    assert next((cell.name, cell.words) for cell in found) == (
        "net / made-up / x / run", ("run", "net.onnx", "--target", "onnxruntime")
    )  # fmt: skip


def test_the_first_entry_that_names_a_cell_holds_and_cells_without_target_are_not_named_by_one():
    found = {
        cell.name: cell.rule.note if cell.rule else ""
        for cell in made(
            expect=[{"model": "net", "feed": "a", "note": "first"}, {"target": "*", "note": "second"}],
            exclude=[{"model": "other", "command": "run"}],
        )
    }
    assert found == {
        "net / a / x / run": "first",
        "net / a / y / run": "first",
        "net / b / x / run": "second",
        "net / b / y / run": "second",
        "net / lint": "",
        "other / lint": "",
    }


def test_tolerances_reach_the_commands_that_judge_by_them():
    found = {cell.name: cell.words for cell in made(expect=[{"atol": 0.5, "rtol": "y:1e-3"}])}
    assert found["net / b / x / run"][-4:] == ("--atol", "0.5", "--rtol", "y:1e-3")
    assert "--atol" not in found["net / lint"]


@pytest.mark.parametrize(
    ("changes", "slug", "said"),
    [
        ({"exclude": [{}]}, "batch-empty", "no cell"),
        ({"expect": [{"model": "nte"}]}, "batch-pattern", "model=nte"),
        ({"exclude": [{"feed": "c"}]}, "batch-pattern", "'exclude'"),
        ({"expect": [{}, {"model": "net"}]}, "batch-pattern", "model=net"),
        ({"models": {"net": {"file": "n", "feeds": ["aa"]}}}, "batch-pattern", "did you mean 'a'?"),
        ({"feeds": {}, "models": {"net": {"file": "n", "feeds": ["aa"]}}}, "batch-pattern", "'aa'"),
        ({"targets": {}}, "batch-target-missing", "'run'"),
        ({"commands": {"d": {"run": "diagnos"}}}, "batch-command", "did you mean 'diagnose'?"),
        ({"commands": {"d": {"run": "run", "options": ["--json"]}}}, "batch-option", "--json"),
        ({"commands": {"d": {"run": "diagnose", "options": ["--case=x"]}}}, "batch-option", "--case=x"),
    ],
)
def test_what_names_nothing_is_refused(changes, slug, said):
    with pytest.raises(DataError) as raised:
        made(**changes)
    assert raised.value.slug == slug
    assert said in f"{raised.value.message} {raised.value.cure}"

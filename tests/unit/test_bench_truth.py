"""The truth corpus knows the truth: what it counts, how it measures faults, and that its cases exist."""

import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

pytestmark = pytest.mark.lengthy

BENCH = Path(__file__).resolve().parents[2] / "bench"
MODULES = ("healthy", "truth_models", "truth_cases", "truth_report", "truth_golden", "truth_sensitivity", "truth")


@pytest.fixture
def bench(monkeypatch, tmp_path):
    """The modules of the bench, writing to a folder of their own."""
    monkeypatch.syspath_prepend(str(BENCH))
    loaded = {name: importlib.import_module(name) for name in MODULES}
    for name in ("truth_models", "truth_cases", "truth_golden"):
        monkeypatch.setattr(loaded[name], "HOME", tmp_path)
    monkeypatch.setattr(loaded["truth_cases"], "ENGINE", tmp_path / "accelerator.py")
    yield loaded
    for name in MODULES:
        del sys.modules[name]


def answered(bench, name, verdict, *, right, size=0.0, culprits=(), named=(), confidence=0.95):
    return bench["truth_report"].Answer(
        name=name, kind=name.rpartition("/")[2], size=size, verdicts=right, culprits=culprits, verdict=verdict,
        confidence=confidence, named=named, summary="", command=f"triage diagnose {name}", seconds=1.0,
    )  # fmt: skip


def test_alarms_misses_culprits_and_confidence_are_counted(bench):
    healthy, faulty = ("match", "rounding"), ("local-fault",)
    answers = [
        answered(bench, "healthy/m/fp16", "rounding", right=healthy),
        answered(bench, "healthy/m/tf32", "local-fault", right=healthy, confidence=0.75),
        answered(bench, "faulty/m/fp16/scale", "local-fault", right=faulty, size=20, culprits=("a",), named=("a",)),
        answered(bench, "faulty/m/tf32/scale", "local-fault", right=faulty, size=5, culprits=("a",), named=("b",)),
        answered(bench, "faulty/m/bf16/scale", "match", right=faulty, size=5, culprits=("a",)),
        answered(bench, "faulty/m/bf16/noise", "match", right=(*faulty, *healthy), size=0.5, culprits=("a",)),
    ]
    values = [
        bench["truth_report"].GoldenAnswer("golden/run/m/epsilon/npz-all", True, failed, "exit", "triage run", 1.0)
        for failed in (True, False, None)
    ]
    text = bench["truth_report"].report(answers, values, "abc")
    for row in (
        "| healthy: false alarms | 1 of 2 (50%) |",
        "| faulty, size from 3: right verdict | 2 of 3 (67%) |",
        "| faulty, size from 3: right first culprit | 1 of 3 (33%) |",
        "| faulty, size from 3: missed (match or rounding) | 1 of 3 (33%) |",
        "| 3 to 10 | 2 | 1 of 2 (50%) | 1 of 2 (50%) | 0 of 2 (0%) |",
        "| 0.7 to 0.8 | 1 | 0.75 | 0 of 1 (0%) |",
        "| run | wrong, must fail | epsilon | 1 of 3 |",
    ):
        assert row in text
    wrong = text.split("Wrong:")[1]
    assert wrong.count("\n- ") == 5
    assert "`triage diagnose healthy/m/tf32`" in wrong


ASKS = """from tensortriage.compare.judgement import within
from tensortriage.envelope import limits
print(within.MATCH_FACTOR, limits.of_floor(1.0), within.FEWEST_CUT)"""


@pytest.mark.parametrize(
    ("name", "factor", "said"), [("MATCH_FACTOR", 0.5, "5.0 5.0 16"), ("FEWEST_CUT", 2.0, "10.0 10.0 32")]
)
def test_a_threshold_is_moved_in_every_process_that_starts_meanwhile(bench, name, factor, said):
    """MATCH_FACTOR is 10 and FEWEST_CUT 16, a count; a module that imported them by name has the new ones."""
    moves, command = bench["truth_sensitivity"], [sys.executable, "-c", ASKS]
    with moves.moved(name, moves.moved_value(name, factor)):
        assert subprocess.check_output(command, text=True).strip() == said
    assert subprocess.check_output(command, text=True).strip() == "10.0 10.0 16"


def test_a_process_that_has_the_old_threshold_gives_no_answer(bench):
    answer_with = bench["truth_sensitivity"].answer_with
    assert answer_with(lambda case: {"name": case}, "MATCH_FACTOR", 10.0, "a") == {"name": "a"}
    with pytest.raises(RuntimeError, match="MATCH_FACTOR was not moved in tensortriage"):
        answer_with(lambda case: {"name": case}, "MATCH_FACTOR", 20.0, "a")


def test_what_moving_a_threshold_does_is_a_row(bench, tmp_path):
    sensitivity = bench["truth_sensitivity"]
    said = {  # verdicts with the threshold halved, as it is, doubled
        "healthy/m/fp16": ("local-fault", "rounding", "rounding"),
        "faulty/m/fp16/a": ("local-fault", "local-fault", "rounding"),
        "faulty/m/fp16/b": ("layout", "layout", "layout"),
        "faulty/m/fp16/c": ("local-fault", "local-fault", None),
    }

    def lines(place):
        right = {"healthy": ("match", "rounding"), "faulty": ("local-fault",)}
        made = {name: answered(bench, name, each[place], right=right[name.split("/")[0]])
                for name, each in said.items() if each[place]}  # fmt: skip
        skipped = {name: {"name": name, "skipped": "gone"} for name, each in said.items() if not each[place]}
        return {name: bench["truth"].dataclasses.asdict(one) for name, one in made.items()} | skipped

    def asked(_ask, file, names):
        assert list(names) == list(said)
        return lines({"MATCH_FACTOR=5.jsonl": 0, "MATCH_FACTOR=20.jsonl": 2}[file.name])

    *_, row = sensitivity.table(["MATCH_FACTOR"], lines(1), asked, None, tmp_path / "c")
    assert row == "| MATCH_FACTOR | 10 | 5 | 0 / 1 / 1 of 4 | 0 / 0 / 1 of 4 | 20 | 1 / 0 / 1 of 3 |"
    with pytest.raises(SystemExit, match="NO_SUCH: no threshold"):
        sensitivity.names_of(["NO_SUCH"])


def test_the_section_is_replaced_and_the_rest_stays(bench, monkeypatch, tmp_path):
    page = tmp_path / "RESULTS.md"
    page.write_text("# Results\n\nIntroduction.\n\n## Truth\n\nold\n\n## Other\n\nkept\n")
    monkeypatch.setattr(bench["truth"], "RESULTS", page)
    bench["truth"].write("new")
    assert page.read_text() == "# Results\n\nIntroduction.\n\n## Truth\n\nnew\n\n## Other\n\nkept\n"
    bench["truth"].write("newer")
    assert page.read_text() == "# Results\n\nIntroduction.\n\n## Truth\n\nnewer\n\n## Other\n\nkept\n"
    page.write_text("# Results\n\nIntroduction.\n")
    bench["truth"].write("first")
    assert page.read_text() == "# Results\n\nIntroduction.\n\n## Truth\n\nfirst\n"


def test_the_size_of_a_fault_is_its_distance_over_the_engines_own_rounding(bench):
    plain = {"y": np.ones(4, np.float32)}
    right, wrong = {"y": plain["y"] * np.float32(1.001)}, {"y": plain["y"] * np.float32(1.005)}
    size = bench["truth_cases"].size_of
    assert size(plain, right, wrong) == pytest.approx(4, rel=0.01)
    assert size(plain, plain, {"y": plain["y"] * np.float32(1.01)}) == pytest.approx(1e5, rel=0.01)  # over 1e-7
    assert size(plain, right, {"y": plain["y"] * np.float32(np.nan)}) == np.inf
    assert size(plain, right, right) == 0


def test_cases_are_made_with_a_truth(bench):
    made = bench["truth_cases"].made
    healthy = made("healthy/mlp/fp16-acc16")
    assert healthy.verdicts[:2] == ("match", "rounding")
    assert healthy.culprits == ()
    assert "precision=fp16,accumulator=fp16,block=16" in healthy.target
    assert made("healthy/mlp/winograd2") is None  # no convolution
    faulty = made("faulty/mlp/reversed-sums/scale-1.1")
    nodes = {node.name for node in onnx.load(faulty.subject.model).graph.node if node.op_type in ("MatMul", "Gemm")}
    assert set(faulty.culprits) <= nodes
    assert faulty.size > 1000  # a tenth against fp32 rounding
    assert f"node={faulty.culprits[0]}" in faulty.target
    assert made("faulty/mlp/reversed-sums/wrong-axis") is None  # no Softmax


def test_every_engine_and_fault_comes_early(bench):
    cases = bench["truth_cases"]
    healthy, faulty = cases.case_names(0)
    assert (healthy, faulty) == cases.case_names(0)
    first = {name.split("/")[2] for name in healthy[: len(cases.FREEDOMS) + len(cases.REAL) + 1]}
    assert set(cases.FREEDOMS) <= first
    assert {name.split("/")[3] for name in faulty[: len(cases.FAULTS)]} == {word for word, _, _ in cases.FAULTS}


@pytest.mark.parametrize("origin", ["eighth-of-rows", "all-weights", "transposed", "epsilon", "one-weight"])
def test_another_model_has_other_outputs(bench, origin):
    golden, found = bench["truth_golden"], bench["truth_models"].subject("encoder_ln")
    right, wrong = (np.load(golden._saved(found, word, whole=False)) for word in ("onnxruntime-basic", origin))
    whole = np.load(golden._saved(found, origin, whole=True))
    for name in right.files:
        error = np.sqrt(np.mean((right[name] - wrong[name]) ** 2) / np.mean(right[name] ** 2))
        assert 1e-4 < error < 1.5
        np.testing.assert_array_equal(whole[name], wrong[name])
    assert len(whole.files) > 40

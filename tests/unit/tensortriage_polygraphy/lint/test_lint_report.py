"""Polygraphy's report of a lint, in its words: what it knows of our findings, its names of nodes, and its verdict."""

import json

import pytest

from models import of_message, proto, write
from tensortriage.errors import ModelError
from tensortriage.model.lint.finding import LintFinding, Severity
from tensortriage_polygraphy.lint.lint_report import LintEntry, report, report_unreadable
from tensortriage_polygraphy.lint.linter import LintReport

CHAIN = "g (float[2] x) => (float[2] y) { [one] a = Abs(x) [two] b = Neg(a) [three] y = Exp(b) }"


def finding(slug="node-refused", *, source="onnxruntime", severity=Severity.EXCEPTION, node="", **given):
    """Return a finding of an engine, unless it says otherwise."""
    given = {"op_type": "Abs" if node else "", "value": "", "why": "", **given}
    return LintFinding(slug, severity, node, where="", cure="", source=source, **given)


@pytest.fixture
def told(tmp_path):
    """Return a function that reports findings in a model, and gives verdict, summary and entries."""

    def made(*findings, model=CHAIN, passing=(), failing=()):
        path = write(tmp_path / "m.onnx", model)
        found = LintReport(str(path), "onnxruntime", (), True, findings, tuple(passing), tuple(failing), ())
        passes = report(found, path, None, tmp_path / "lint.json")
        document = json.loads((tmp_path / "lint.json").read_text())
        return passes, document["summary"], document["lint_entries"]

    return made


def test_a_node_that_the_engine_refuses_fails(told):
    why = "ONNX Runtime refused the model: This is an invalid model. Node (one) Op (Abs) [TypeInferenceError] it is odd"
    passes, summary, entries = told(finding(node="one", why=why), passing=["two", "three"], failing=["one"])
    assert (passes, summary) == (False, {"passing": ["three", "two"], "failing": ["one"]})
    assert entries == [{"level": "exception", "source": "onnxruntime", "message": " it is odd", "nodes": ["one"]}]


@pytest.mark.parametrize(
    ("why", "message"),
    [
        ("In Node, (x) : y, Error No Op registered for Foo", "No Op registered for Foo"),
        ("as it is", "as it is"),
        ("ONNX Runtime refused the model: as it is", "as it is"),
    ],
)
def test_of_what_an_engine_says_the_core_is_told(told, why, message):
    assert told(finding(node="one", why=why))[2][0]["message"] == message


def test_an_operator_of_ones_own_is_a_warning_and_its_node_passes(told):
    why = "Fatal error: custom:Odd(-1) is not a registered function/op"
    passes, summary, entries = told(finding(node="one", why=why), passing=["two"], failing=["one", "three"])
    assert (passes, entries[0]["level"]) == (True, "warning")
    assert summary == {"passing": ["one", "two"], "failing": ["three"]}


def test_an_operator_of_a_domain_that_the_model_does_not_declare_is_one_of_ones_own(told):
    why = "ONNX Runtime refused the model: In Node, (x) : y, Error No opset import for domain 'my.domain'"
    checker = finding("onnx-checker", source="onnx_checker", why="No opset import for domain 'my.domain'")
    passes, summary, entries = told(checker, finding(node="one", why=why), failing=["one"])
    assert (passes, summary["passing"]) == (True, ["one"])
    assert [entry["message"] for entry in entries] == ["Fatal error: my.domain:Abs(-1) is not a registered function/op"]
    assert not told(finding("onnx-checker", source="onnx_checker", why="No opset import for domain 'ai.onnx'"))[0]


def test_a_name_that_is_defined_twice_is_the_checkers(told):
    twice = finding("value-defined-twice", source="onnx_loader", why="'x' is defined more than once")
    assert told(twice)[2][0]["source"] == "onnx_checker"


def test_what_nothing_uses_is_told_last_and_does_not_pass_as_a_node(told):
    passes, summary, entries = told(
        finding("node-unused", node="two", severity=Severity.HINT, source="rule"),
        finding("input-unused", value="x", severity=Severity.HINT, source="rule"),
        passing=["one", "two"],
    )
    assert (passes, summary["passing"]) == (True, ["one"])
    assert [(entry["level"], entry["source"], entry.get("nodes")) for entry in entries] == [
        ("warning", "onnx_graphsurgeon", None),
        ("warning", "onnx_graphsurgeon", ["two"]),
    ]
    assert "'x'" in entries[0]["message"]


def test_rules_of_ours_and_hints_are_none_of_its(told):
    passes, _, entries = told(
        finding("scale-too-small", node="one", source="rule"),
        finding("odd", node="one", severity=Severity.PROBLEM),
        finding("checked", source="onnx_checker", why="No Op registered for Odd with domain_version of 18"),
    )
    assert (passes, entries) == (True, [])


def test_what_the_checker_and_the_loader_refuse_is_told_as_it_is(told):
    passes, _, entries = told(finding("checked", source="onnx_checker", why="it is odd"))
    assert (passes, entries) == (False, [{"level": "exception", "source": "onnx_checker", "message": "it is odd"}])
    passes, summary, entries = told(
        finding("model-empty", source="onnx_loader", severity=Severity.PROBLEM), failing=["kept"]
    )
    assert (passes, entries[0]["level"], summary["failing"]) == (True, "warning", ["kept"])


def test_nodes_without_a_name_have_those_that_polygraphy_gives_them(told):
    nameless = proto(CHAIN)
    nameless.graph.node[0].name = "polygraphy_unnamed_node_2"  # it is taken
    for node in nameless.graph.node[1:]:
        node.ClearField("name")
    ours = [node.name for node in of_message(nameless).graph.nodes]
    _, summary, entries = told(finding(node=ours[2], why="odd"), model=nameless, passing=ours[:2], failing=ours[2:])
    assert summary["passing"] == ["polygraphy_unnamed_node_1", "polygraphy_unnamed_node_2"]
    assert summary["failing"] == entries[0]["nodes"] == ["polygraphy_unnamed_node_2_0"]


def test_names_that_occur_twice_are_all_that_is_told(told):
    twice = proto(CHAIN)
    twice.graph.node[2].name = "one"
    passes, summary, entries = told(finding(node="two", why="odd"), model=twice, passing=["one"], failing=["two"])
    assert (passes, summary) == (False, {"passing": [], "failing": ["one"]})
    assert [(entry["source"], entry["nodes"]) for entry in entries] == [("onnx_graphsurgeon", ["one"])]
    assert "[0, 2]" in entries[0]["message"]


def test_a_file_that_is_no_model_has_an_entry_and_may_have_no_report(tmp_path):
    error = ModelError("it is cut off", slug="model-unreadable", cure="")
    report_unreadable(error, None)
    report_unreadable(error, tmp_path / "lint.json")
    (entry,) = json.loads((tmp_path / "lint.json").read_text())["lint_entries"]
    assert (entry["level"], entry["source"]) == ("exception", "onnx_loader")
    assert entry["message"].endswith(": it is cut off")


def test_what_could_not_be_loaded_has_no_names_to_look_up(tmp_path):
    (tmp_path / "m.onnx").write_bytes(b"no model")
    found = LintReport("m", "", (), False, (finding("unreadable", source="onnx_loader", why="odd"),), (), (), ())
    assert report(found, tmp_path / "m.onnx", None, None) is False


def test_lines_name_the_node_and_its_operator(caplog):
    with caplog.at_level("WARNING"):
        LintEntry("warning", "onnxruntime", "it is odd", "one", "Abs").tell()
        LintEntry("exception", "onnx_checker", "it is odd").tell()
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "LINT | Name: one, Op: Abs | it is odd"),
        ("ERROR", "LINT | it is odd"),
    ]

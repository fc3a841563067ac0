"""JSON Schemas: those that are shipped are those of the classes, and every document of the product has one."""

import json
import re
import runpy
from pathlib import Path

import jsonschema_rs
import pytest
import yaml
from click.testing import CliRunner

import documents
from tensortriage.cli import cli
from tensortriage.errors import DataError
from tensortriage_fleet.batch.batch_file import read_batch_file

ROOT = Path(__file__).resolve().parents[3]
MADE = runpy.run_path(str(ROOT / "docs/make_schemas.py"))
SCHEMAS = MADE["schemas"]()


def test_they_are_those_of_the_classes():
    shipped = {file.name: file.read_text() for file in MADE["FOLDER"].glob(f"*{documents.ENDING}")}
    assert shipped == SCHEMAS, "run docs/make_schemas.py again"


def test_they_are_schemas_and_describe_what_the_page_names():
    for text in SCHEMAS.values():
        jsonschema_rs.meta.validate(json.loads(text))
    page = (ROOT / "docs/machines.md").read_text()
    assert {json.loads(text)["title"] for text in SCHEMAS.values()} <= set(
        re.findall(r"`(tensortriage\.[\w-]+/1)`", page)
    )


def test_every_format_in_the_source_has_one():
    named = set()
    for file in (ROOT / "src").rglob("*.py"):
        named.update(re.findall(r'"tensortriage\.([a-z-]+)/1"', file.read_text()))
    assert named - documents.UNDESCRIBED == {name.removesuffix(documents.ENDING) for name in SCHEMAS}


def test_a_field_is_described_and_a_number_may_be_none():
    verdict = json.loads(SCHEMAS["verdict.schema.json"])
    assert verdict["properties"]["summary"] == {"description": "One sentence for people.", "type": "string"}
    assert "local-fault" in verdict["properties"]["verdict"]["enum"]
    assert verdict["required"] == list(verdict["properties"])
    culprit = verdict["$defs"]["Culprit"]["properties"]
    assert culprit["local_error"]["anyOf"] == [{"$ref": "#/$defs/Number"}, {"type": "null"}]
    number = jsonschema_rs.validator_for(verdict["$defs"]["Number"])
    assert [number.is_valid(value) for value in (1.5, "NaN", "-Infinity", "nan", None)] == [
        True,
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("change", "valid"),
    [
        ({}, True),
        ({"commands": ["run", "diagnose"], "targets": {"x": {"engine": "onnxruntime", "optional": True}}}, True),
        ({"expect": [{"model": "m", "match": False, "atol": 1e-3}], "timeout": 5}, True),
        ({"comands": {}}, False),
        ({"models": {"m": {"feeds": ["f"]}}}, False),
        ({"targets": {"x": {"engin": "onnxruntime"}}}, False),
        ({"timeout": "5"}, False),
    ],
)
def test_that_of_a_batch_file_agrees_with_its_reader(tmp_path, change, valid):
    document = {"models": {"m": "m.onnx"}, "feeds": {"f": "f.npz"}, "commands": {"run": "run"}} | change
    (tmp_path / "batch.yaml").write_text(json.dumps(document))  # JSON is YAML
    schema = jsonschema_rs.validator_for(json.loads(SCHEMAS["batch.schema.json"]))
    assert schema.is_valid(document) is valid
    if valid:
        read_batch_file(tmp_path / "batch.yaml")
    else:
        with pytest.raises(DataError):
            read_batch_file(tmp_path / "batch.yaml")


def test_the_examples_batch_file_is_as_its_schema_says():
    schema = jsonschema_rs.validator_for(json.loads(SCHEMAS["batch.schema.json"]))
    schema.validate(yaml.safe_load((ROOT / "examples/batch.yaml").read_text()))


ERROR = {"slug": "s", "message": "m", "cure": "", "exit_code": 2, "format": "tensortriage.error/1"}


@pytest.mark.parametrize(
    "change", [{"slug": 1}, {"exit_code": "2"}, {"more": 1}, {"format": "tensortriage.error/2"}, {"cure": None}]
)
def test_what_holds_documents_against_them_finds_a_wrong_one(change):
    documents.check(ERROR, "here")
    with pytest.raises(AssertionError, match="here is not as error"):
        documents.check(ERROR | change, "here")
    with pytest.raises(AssertionError):
        documents.check({name: value for name, value in ERROR.items() if name != "slug"}, "here")


def test_the_command_lists_and_prints_them():
    listed = CliRunner().invoke(cli, ["inspect", "schema", "--json"])
    told = json.loads(listed.stdout)
    documents.check(told, "the list")
    assert {f"{name}{documents.ENDING}" for name in told["documents"]} == set(SCHEMAS)
    for name in ("run", "tensortriage.run/1"):
        assert CliRunner().invoke(cli, ["inspect", "schema", name]).stdout == SCHEMAS["run.schema.json"]

import json

import pytest
from click.testing import CliRunner

from tensortriage.cli.engines import engines


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


def test_the_list_is_what_the_word_alone_prints():
    alone, listed = (CliRunner().invoke(engines, words) for words in ([], ["list"]))
    assert alone.output == listed.output
    assert any(line.split()[0] == "onnxruntime" for line in alone.output.splitlines())


def test_the_list_as_a_document():
    found = json.loads(CliRunner().invoke(engines, ["list", "--json"]).stdout)
    assert found["format"] == "tensortriage.engines/1"
    assert {"onnxruntime", "openvino", "script"} <= {row["name"] for row in found["engines"]}


@pytest.mark.lengthy
def test_an_engine_that_conforms_and_one_that_does_not(tmp_path):
    done = CliRunner().invoke(engines, ["check", "float64", "--json"])
    assert (done.exit_code, json.loads(done.stdout)["failures"]) == (0, "")
    script = tmp_path / "wrong.py"
    script.write_text(
        "class Engine:\n"
        "    def compile(self, model, options):\n"
        "        return Session()\n"
        "class Session:\n"
        "    def run(self, feed):\n"
        "        return {}\n"
    )
    done = CliRunner().invoke(engines, ["check", f"script:{script}"])
    assert done.exit_code == 1

"""The scripts that ``triage template`` writes: they run, and set what the options say."""

import runpy
import subprocess
import sys
from unittest.mock import MagicMock, call

import onnx
import pytest

import models
from tensortriage.cli import main


def written(*words, tmp_path, monkeypatch):
    """Write a template with an imitated tensorrt, and return its functions and that."""
    path = tmp_path / "script.py"
    with pytest.raises(SystemExit) as ended:
        main(["template", *map(str, words), "-o", str(path)])
    assert ended.value.code == 0
    tensorrt = MagicMock()
    monkeypatch.setitem(sys.modules, "tensorrt", tensorrt)
    return runpy.run_path(str(path)), tensorrt


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "it's.onnx"
    models.mlp().save(path)
    return path


def test_an_edit_runs_as_it_stands(model, tmp_path):
    with pytest.raises(SystemExit):
        main(["template", "onnx-gs", str(model), "-o", str(tmp_path / "edit.py")])
    subprocess.run([sys.executable, tmp_path / "edit.py"], check=True, timeout=120)
    before, after = onnx.load(model), onnx.load(tmp_path / "it's_updated.onnx")
    assert [node.op_type for node in after.graph.node] == [node.op_type for node in before.graph.node]


def test_a_network_of_a_model(model, tmp_path, monkeypatch):
    functions, tensorrt = written("trt-network", model, tmp_path=tmp_path, monkeypatch=monkeypatch)
    builder, network, parser = functions["load_network"]()
    assert builder is tensorrt.Builder.return_value
    assert network is builder.create_network.return_value
    assert parser.parse_from_file.call_args == call(str(model))
    parser.parse_from_file.return_value = False
    parser.num_errors = 1
    parser.get_error.return_value = "no such operator"
    with pytest.raises(RuntimeError, match="no such operator"):
        functions["load_network"]()


def test_an_empty_network(tmp_path, monkeypatch):
    functions, _ = written("trt-network", tmp_path=tmp_path, monkeypatch=monkeypatch)
    assert len(functions["load_network"]()) == 2


def test_a_configuration_has_what_the_options_say(tmp_path, monkeypatch):
    words = ["--fp16", "--int8", "--tf32", "--sparse-weights", "--builder-optimization-level", "2"]
    words += ["--pool-limit", "workspace:32M", "--trt-min-shapes", "x:[1,3]", "--trt-max-shapes", "x:[4,3]"]
    words += ["--profiling-verbosity", "DETAILED"]
    functions, tensorrt = written("trt-config", *words, tmp_path=tmp_path, monkeypatch=monkeypatch)
    builder = MagicMock()
    config = functions["load_config"](builder, None)
    flags = tensorrt.BuilderFlag
    expected = [call(flags.INT8), call(flags.FP16), call(flags.SPARSE_WEIGHTS)]
    assert config.set_flag.call_args_list == expected
    assert config.clear_flag.call_args_list == [call(flags.TF32)]
    assert config.builder_optimization_level == 2
    assert config.profiling_verbosity is tensorrt.ProfilingVerbosity.DETAILED
    assert config.set_memory_pool_limit.call_args == call(tensorrt.MemoryPoolType.WORKSPACE, 32 << 20)
    profile = builder.create_optimization_profile.return_value
    assert profile.set_shape.call_args == call("x", (1, 3), (4, 3), (4, 3))
    assert config.add_optimization_profile.call_args == call(profile)


def test_what_is_no_configuration_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["template", "trt-config", "--save-engine", str(tmp_path / "e"), "-o", str(tmp_path / "c.py")])
    assert ended.value.code == 2
    assert "error[template-option]" in capsys.readouterr().err
    assert not (tmp_path / "c.py").exists()

"""Command lines as Polygraphy's users and its own tests write them, with the word replaced: they run, and end alike.

Each row is a few lines in one folder; all but the last end with 0, the last with the code given, as with Polygraphy
0.53.6. In the folder are ``m.onnx``, ``qdq.onnx``, ``load.py``, ``cmp.py``, ``check.py`` and an empty ``empty.tmp``.
"""

import shlex
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tensortriage.cli import main

pytestmark = pytest.mark.lengthy

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
LOADER = """
import numpy as np
def load_data():
    for _ in range(2):
        yield {"image": np.ones((1, 1, 8, 8), np.float32)}
other = load_data
"""
CHECK = "import sys, onnx; sys.exit(any(n.op_type == 'Gemm' for n in onnx.load('polygraphy_debug.onnx').graph.node))"
RUN = """
run m.onnx --onnxrt
run m.onnx --onnxrt -v
run --onnxrt m.onnx -vvv --model-type onnx
run m.onnx --onnxrt --log-file log/x.log
run m.onnx --onnxrt -qq
run m.onnx --onnxrt --onnxrt
run m.onnx --onnxrt --pluginref --atol 1e-4 --rtol 1e-4
run m.onnx --onnxrt --providers cpu
run m.onnx --onnxrt --execution-providers CPUExecutionProvider
run m.onnx --onnxrt --graph-optimization-level ORT_DISABLE_ALL
run m.onnx --onnxrt --validate
run m.onnx --onnxrt --onnxrt --warm-up 2 --sequential-runners
run m.onnx --onnxrt --onnxrt --use-subprocess --sequential-runners
run m.onnx --onnxrt --onnxrt --fail-fast --iterations 3
run m.onnx --onnxrt --iterations 0
run m.onnx --onnxrt --onnxrt --iters=5 -v
run m.onnx --onnxrt --onnxrt --atol 1e-3 --rtol 1e-3
run m.onnx --onnxrt --onnxrt --atol logits:1e-3 0.5 --rtol 1e-3
run m.onnx --onnxrt --onnxrt --check-error-stat max
run m.onnx --onnxrt --onnxrt --check-error-stat logits:mean
run m.onnx --onnxrt --onnxrt --check-error-stat quantile --error-quantile 0.9
run m.onnx --onnxrt --onnxrt --no-shape-check --infinities-compare-equal
run m.onnx --onnxrt --onnxrt --compare-func simple
run m.onnx --onnxrt --onnxrt --compare l2 cosine_similarity --l2-threshold 0.1
run m.onnx --onnxrt --onnxrt --compare distance_metrics quality_metrics
run m.onnx --onnxrt --onnxrt --compare psnr --psnr-threshold 20
run m.onnx --onnxrt --onnxrt --postprocess top-5
run m.onnx --onnxrt --onnxrt --postprocess logits:top-5,axis=1
run m.onnx --onnxrt --onnxrt --seed 7 --val-range [0,5]
run m.onnx --onnxrt --val-range image:[-1.0,inf]
run m.onnx --onnxrt --data-loader-script load.py
run m.onnx --onnxrt --data-loader-script load.py:other
run m.onnx --onnxrt --data-loader-backend-module numpy
run m.onnx --onnxrt --input-shapes image:[2,1,8,8]
run m.onnx --onnxrt --inputs image:[2,1,8,8]
run m.onnx --onnxrt --onnxrt --onnx-outputs mark all
run m.onnx --onnxrt --onnxrt --onnx-outputs '*' --onnx-exclude-outputs logits
run m.onnx --onnxrt --onnx-outputs-by-type Conv Add
run m.onnx --onnxrt --save-onnx saved.onnx ;; run saved.onnx --onnxrt
run m.onnx --onnxrt --save-onnx saved.onnx --save-external-data w.data --external-data-size-threshold 0
run m.onnx --onnxrt --save-onnx s/saved.onnx --save-external-data --no-save-all-tensors-to-one-file
run m.onnx --onnxrt --shape-inference --no-onnxruntime-shape-inference
run m.onnx --onnxrt --fp-to-fp16
run m.onnx --onnxrt --save-inputs in.json --save-outputs out.json ;; run m.onnx --onnxrt --load-inputs in.json --load-outputs out.json
run m.onnx --onnxrt --save-outputs folder --iterations 3 ;; run m.onnx --onnxrt --load-outputs folder --iterations 3 --seed 1
run m.onnx --onnxrt --save-outputs a.json ;; run --load-outputs a.json a.json --validate --save-outputs b.json ;; run --load-results b.json
run m.onnx --onnxrt --save-outputs empty.tmp ;; inspect data empty.tmp
run m.onnx --onnxrt --save-inputs empty.tmp ;; run m.onnx --onnxrt --load-inputs empty.tmp
run m.onnx --onnxrt --save-outputs out.json ;; run m.onnx --onnxrt --save-outputs out.json
run m.onnx --onnxrt --save-outputs folder ;; run m.onnx --onnxrt --save-outputs folder
run m.onnx --onnxrt --save-input-blob blobs
run m.onnx --onnxrt --load-inputs double.json
run m.onnx --onnxrt --onnxrt --save-accuracy-results a.json --check-error-stat max ;; check accuracy a.json --atol 1 --check-average
"""  # noqa: E501 - command lines stay whole
GRAPHS = """
inspect model m.onnx
inspect model m.onnx -v --model-type onnx
inspect model m.onnx --show layers
inspect model m.onnx --show layers attrs weights --shape-inference
inspect model m.onnx --list-unbounded-dds --ignore-external-data
inspect data double.json -a -s --histogram -n 4 --line-width 80
run m.onnx --onnxrt --save-outputs out.json --iterations 2 ;; inspect data out.json --all --show-values
surgeon extract m.onnx -o e.onnx --inputs image:auto:auto --outputs logits:auto ;; run e.onnx --onnxrt
surgeon extract m.onnx -o e.onnx --outputs /Relu_1_output_0:float32 -v
surgeon extract m.onnx -o e.onnx --inputs /Relu_1_output_0:[1,64,2,2]:float32 --shape-inference
surgeon extract m.onnx -o e.onnx --inputs /Relu_1_output_0:auto:auto --force-fallback-shape-inference --model-input-shapes image:[1,1,8,8]
surgeon sanitize m.onnx -o s.onnx --fold-constants
surgeon sanitize m.onnx -o s.onnx --fold-constants --num-passes 2 --no-fold-shapes --no-per-pass-shape-inference
surgeon sanitize m.onnx -o s.onnx --fold-constants --partitioning recursive --fold-size-threshold 1M
surgeon sanitize m.onnx -o s.onnx --cleanup --toposort --no-shape-inference
surgeon sanitize m.onnx -o s.onnx --override-input-shapes image:[1,1,8,8] --force-fallback-shape-inference
surgeon sanitize m.onnx -o s.onnx --outputs logits --cleanup
surgeon sanitize m.onnx -o s.onnx --fp-to-fp16
surgeon sanitize m.onnx -o s/s.onnx --save-external-data data.bin --external-data-size-threshold 0
surgeon sanitize m.onnx -o empty.tmp --fold-constants -q
surgeon insert m.onnx -o i.onnx --op FakeOp --inputs image --outputs logits --name fake ;; inspect model i.onnx
surgeon insert m.onnx -o i.onnx --op Relu --inputs /Relu_1_output_0 --outputs /Relu_1_output_0
surgeon insert m.onnx -o i.onnx --op FakeOp --inputs image --outputs logits --attrs a=1.0 b=2 c=[1,2] d='"x"'
convert m.onnx -o c.onnx -v
convert m.onnx --convert-to onnx -o c.out
convert m.onnx --fp-to-fp16 -o c.onnx
convert m.onnx -o c.onnx --onnx-outputs mark all --shape-inference
check lint m.onnx
check lint m.onnx -o lint.json -v --providers cpu
check lint m.onnx --input-shapes image:[1,1,8,8] --seed 1 --val-range [0,1]
run m.onnx --onnxrt --save-inputs i.json --save-outputs o.json ;; data merge i.json o.json -o all.json ;; inspect data all.json
run m.onnx --onnxrt --save-inputs i.json ;; data concat i.json i.json -o two.json ;; run m.onnx --onnxrt --load-inputs two.json
debug repeat --until 3 --check true
debug repeat --until good --check true -q
debug repeat --until 2 --fail-code 7 --check false
debug repeat --until 2 --ignore-fail-code 1 --check false
debug repeat --until 2 --fail-regex REALLY --check echo fine
debug repeat --until 2 --iter-info iter.json --check test -f iter.json
debug repeat --until 1 --artifacts double.json --art-dir arts --show-output --check echo x
debug reduce m.onnx -o red.onnx --mode bisect --check PYTHON check.py
debug reduce m.onnx -o red.onnx --mode linear --min-good good.onnx --no-reduce-inputs --check PYTHON check.py
debug reduce m.onnx -o red.onnx --model-input-shapes image:[1,1,8,8] --artifacts polygraphy_debug.onnx --check PYTHON check.py
debug reduce m.onnx -o red.onnx --iter-artifact polygraphy_debug.onnx --show-output -v --check PYTHON check.py
"""  # noqa: E501 - command lines stay whole
FAILING = """
run m.onnx --onnxrt --compare-func-script missing.py
run missing.onnx --onnxrt
run m.onnx --onnxrt --load-outputs missing.json
inspect data missing.json
"""
ROWS = [line for text in (RUN, GRAPHS) for line in text.strip().splitlines()]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return a folder with what the command lines name."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "m.onnx").write_bytes((EXAMPLES / "digits_cnn.onnx").read_bytes())
    nodes = [
        helper.make_node("QuantizeLinear", ["w", "s"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s"], ["d"]),
        helper.make_node("MatMul", ["x", "d"], ["y"]),
    ]
    constants = [numpy_helper.from_array(np.ones((4, 4), np.float32), "w"), numpy_helper.from_array(np.float32(1), "s")]
    values = [helper.make_tensor_value_info(name, 1, [1, 4]) for name in "xy"]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "qdq.onnx")
    np.savez(folder / "double.npz", image=np.zeros((1, 1, 8, 8)))
    (folder / "load.py").write_text(LOADER)
    (folder / "check.py").write_text(CHECK)
    (folder / "empty.tmp").touch()
    return folder


@pytest.fixture
def place(files, tmp_path, monkeypatch):
    """Go to a fresh copy of that folder."""
    for path in files.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.chdir(tmp_path)
    assert ended("data convert double.npz -o double.json") == 0
    return tmp_path


def ended(line):
    """Run a command line in this process and return its exit code."""
    words = [sys.executable if word == "PYTHON" else word for word in shlex.split(line)]
    with pytest.raises(SystemExit) as caught:
        main(words)
    return caught.value.code


@pytest.mark.parametrize("row", ROWS)
def test_a_command_line_runs(row, place, capsys):
    for line in row.split(" ;; "):
        # debug repeat says with its exit code whether a run failed; there, the code says that the tool ran.
        prefix = "polygraphy " if line.startswith("debug repeat") else ""
        assert ended(prefix + line) == 0, capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "slug"),
    [
        ("run m.onnx --onnxrt --onnx-outputs-by-type NoSuchOp", "op-type-unknown"),
        ("run m.onnx --onnxrt --onnxrt --atol nothing:1e-3", "tolerance-unused"),
    ],
)
def test_what_names_nothing_is_an_error_here_and_told_there(line, slug, place, capsys):
    assert ended(line) == 2
    assert slug in capsys.readouterr().err
    assert ended("polygraphy " + line) == 0, capsys.readouterr().err


@pytest.mark.parametrize("words", ["--save-inputs i.json", "--save-onnx o.onnx", "--metric f.py"])
def test_what_needs_the_model_is_refused_without_one(words, place, capsys):
    (place / "f.py").write_text("def metric(outputs, feed):\n    return 0.0\n")
    assert ended("run m.onnx --onnxrt --save-outputs a.json") == 0
    assert ended(f"run --load-outputs a.json a.json {words}") == 2
    assert f"{words.split()[0]} needs the model" in capsys.readouterr().err
    assert ended("run --onnxrt --load-outputs a.json") == 2


@pytest.mark.parametrize("row", FAILING.strip().splitlines())
def test_a_command_line_fails_as_there(row, place, capsys):
    assert ended("polygraphy " + row) == 1

"""What NVIDIA's page on reducing says to type, on a model of the kind it is about: shapes that follow from the data.

The model is X -> first -> Reshape to one row, whose size is computed from the shape of X -> bad -> last. The check is a
script that knows the node that is at fault. Every command line is one of `triage polygraphy`.
"""

import shlex
import sys

import numpy as np
import onnx
import pytest

from tensortriage.cli import main

pytestmark = pytest.mark.lengthy

CHECK = """
import sys
text = open("polygraphy_debug.onnx", "rb").read()
if b"bad" in text:
    print("FAILED | Difference exceeds tolerance")
    sys.exit(1)
if b"first" not in text:
    sys.exit("cannot load the model")  # exit code 1 as well, for another reason
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Go to a directory with ``m.onnx`` and ``check.py``."""
    monkeypatch.chdir(tmp_path)
    made, value = onnx.helper.make_node, onnx.helper.make_tensor_value_info
    constants = {"one": np.int64([1]), "axis": np.int64(0), "half": np.float32(0.5)}
    nodes = [
        made("Relu", ["X"], ["f"], "first"),
        made("Shape", ["f"], ["shape"], "shape"),
        made("ReduceProd", ["shape"], ["size"], "size", keepdims=1),
        made("Concat", ["one", "size"], ["row"], "row", axis=0),
        made("Reshape", ["f", "row"], ["flat"], "flat"),
        made("Mul", ["flat", "half"], ["b"], "bad"),
        made("Abs", ["b"], ["y"], "last"),
    ]
    weights = [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()]
    ends = [value("X", 1, ["n", 3]), value("y", 1, None)]
    graph = onnx.helper.make_graph(nodes, "g", ends[:1], ends[1:], weights)
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), "m.onnx")
    (tmp_path / "check.py").write_text(CHECK)
    return tmp_path


def ran(line, code=0):
    """Run a command line of Polygraphy's in this process."""
    words = [sys.executable if word == "PYTHON" else word for word in shlex.split(line)]
    with pytest.raises(SystemExit) as caught:
        main(["polygraphy", *words])
    assert caught.value.code == code, line


def graph_of(name):
    graph = onnx.load(name).graph
    sizes = [[dim.dim_value or dim.dim_param for dim in value.type.tensor_type.shape.dim] for value in graph.input]
    return [node.name for node in graph.node], [value.name for value in graph.input], sizes


def test_shapes_are_frozen_and_folded_away_first(folder):
    ran("surgeon sanitize m.onnx -o frozen.onnx --override-input-shapes X:[2,3] --fold-constants")
    assert graph_of("frozen.onnx") == (["first", "flat", "bad", "last"], ["X"], [[2, 3]])
    ran("debug reduce frozen.onnx -o r.onnx --fail-regex 'exceeds tolerance' --check PYTHON check.py")
    assert graph_of("r.onnx") == (["bad"], ["flat"], [[1, 6]])


@pytest.mark.parametrize("more", ["", "--force-fallback-shape-inference"])
def test_or_the_shapes_of_inputs_are_given(more, folder):
    line = f"debug reduce m.onnx -o r.onnx --model-input-shapes X:[2,3] {more}"
    ran(f"{line} --fail-regex exceeds --check PYTHON check.py")
    names, inputs, sizes = graph_of("r.onnx")
    assert (names, inputs) == (["bad"], ["flat"])
    assert sizes == [[1, 6]] or not more  # inference does not see through the product


def test_or_the_inputs_stay(folder):
    ran("debug reduce m.onnx -o r.onnx --no-reduce-inputs --check PYTHON check.py")
    names, inputs, _ = graph_of("r.onnx")
    assert (names[0], names[-1], inputs) == ("first", "bad", ["X"])


def test_every_piece_is_kept_and_a_good_one(folder):
    ran("debug reduce m.onnx -o r.onnx --mode linear --artifacts polygraphy_debug.onnx --min-good good.onnx "
        "--no-reduce-inputs --check PYTHON check.py")  # fmt: skip
    kept = {word: sorted((folder / "polygraphy_artifacts" / word).iterdir()) for word in ("good", "bad")}
    assert [path.name.rpartition("_N")[2] for path in kept["bad"]] == ["1_outputs.onnx"]
    assert graph_of("good.onnx")[0] == ["first", "shape", "size", "row", "flat"]


def test_a_coarse_search_first_and_a_fine_one_after_it(folder):
    ran("debug reduce m.onnx -o coarse.onnx --mode bisect --no-reduce-inputs --check PYTHON check.py")
    ran("debug reduce coarse.onnx -o r.onnx --mode linear --fail-regex exceeds --check PYTHON check.py")
    assert graph_of("r.onnx")[0] == ["bad"]


def test_another_file_may_hold_the_piece(folder):
    (folder / "check.py").write_text(CHECK.replace("polygraphy_debug", "piece"))
    ran("debug reduce m.onnx -o r.onnx --iter-artifact piece.onnx --no-reduce-inputs --check PYTHON check.py")
    assert graph_of("r.onnx")[0][-1] == "bad"
    assert not (folder / "piece.onnx").exists()

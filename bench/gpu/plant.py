"""``triage`` with a fault planted in front of TensorRT, which builds a changed file; triage knows the right one.

    PLANT='/fc/Gemm|scale|1.02' python bench/gpu/plant.py diagnose model.onnx --target tensorrt:... --inputs real.npz

PLANT is NODE|KIND|AMOUNT. ``scale`` multiplies the node's result, ``every2`` does so in every second build that has the
node, ``nan`` makes the first element of the last axis NaN (all of them where the shape is unknown), ``qscale``
multiplies the scale of a QuantizeLinear. Parts of the model that hold the node are wrong as well, as those of an engine
with a wrong kernel are. `PLANT_ENGINE=openvino` plants in front of OpenVINO instead, which needs no GPU.
"""

import itertools
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

SUFFIX = "__planted"


def planted(model: onnx.ModelProto, node_name: str, kind: str, amount: float) -> bool:
    """Change a model in place; return False, and change nothing, where it lacks the node.

    Args:
        model: The model.
        node_name: The node that is to be wrong.
        kind: ``scale``, ``nan`` or ``qscale``.
        amount: The factor.
    """
    graph = model.graph
    place = next((index for index, node in enumerate(graph.node) if node.name == node_name), None)
    if place is None:
        return False
    node = graph.node[place]
    if kind == "qscale":
        made = {node.output[0]: node.attribute[0].t for node in graph.node if node.op_type == "Constant"}
        scale = {**made, **{tensor.name: tensor for tensor in graph.initializer}}[node.input[1]]
        value = numpy_helper.to_array(scale)
        node.input[1] = node_name + SUFFIX
        graph.initializer.append(numpy_helper.from_array(np.asarray(value * amount, value.dtype), node.input[1]))
        return True
    name, factor = node.output[0], np.asarray(amount, np.float32)
    if kind == "nan":
        known = [*onnx.shape_inference.infer_shapes(model).graph.value_info, *graph.output]
        shapes = [value.type.tensor_type.shape.dim for value in known if value.name == name]
        last = next((dims[-1].dim_value for dims in shapes if dims), 1)
        factor = np.ones(last, np.float32)
        factor[0] = np.nan
    node.output[0] = name + SUFFIX
    graph.initializer.append(numpy_helper.from_array(factor, f"{name}{SUFFIX}_factor"))
    graph.node.insert(
        place + 1, helper.make_node("Mul", [name + SUFFIX, f"{name}{SUFFIX}_factor"], [name], name=node_name + SUFFIX)
    )
    return True


class Plant:
    """Plants a fault in what an engine is given to build.

    Args:
        words: NODE|KIND|AMOUNT.
        folder: Where changed files and the count of builds go.
    """

    def __init__(self, words: str, folder: Path) -> None:
        self._node, self._kind, amount = words.split("|")
        self._amount, self._folder = float(amount), folder
        self._numbers = itertools.count()

    def file(self, path: Path) -> Path:
        """Return the file to build in place of one."""
        model = onnx.load(path)
        right = self._kind == "every2" and self._builds_before(model) % 2 == 0
        if right or not planted(model, self._node, self._kind.replace("every2", "scale"), self._amount):
            return path
        changed = self._folder / f"{os.getpid()}_{next(self._numbers)}_{path.name}"
        onnx.save(model, changed)
        return changed

    def _builds_before(self, model: onnx.ModelProto) -> int:
        """Count a build that has the node; return how many there were before, of all processes."""
        if all(node.name != self._node for node in model.graph.node):
            return 0
        count = self._folder / "builds"
        before = count.stat().st_size if count.exists() else 0
        with count.open("ab") as file:
            file.write(b"x")
        return before

    def before(self, engine: type[Any]) -> None:
        """Make an engine class build what this plant makes of its files."""
        right: Callable[[Any, Path, Mapping[str, str]], object] = engine.compile

        def compile_planted(own: Any, model: Path, options: Mapping[str, str]) -> object:
            return right(own, self.file(Path(model)), options)

        engine.compile = compile_planted


def install() -> None:
    """Plant what the environment says; processes that this one starts do so again, into the same folder."""
    from tensortriage_engines.openvino.engine import OpenVinoEngine
    from tensortriage_engines.tensorrt.engine import TensorRtEngine

    folder = os.environ.setdefault("PLANT_FOLDER", tempfile.mkdtemp(prefix="planted-"))
    engine = OpenVinoEngine if os.environ.get("PLANT_ENGINE") == "openvino" else TensorRtEngine
    Plant(os.environ["PLANT"], Path(folder)).before(engine)


if "PLANT" in os.environ:
    install()

if __name__ == "__main__":
    if "PLANT" not in os.environ:
        sys.exit("PLANT=NODE|KIND|AMOUNT is not set")
    from tensortriage.cli import main

    main()

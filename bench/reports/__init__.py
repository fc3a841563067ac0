"""Public bug reports about wrong numbers, rebuilt small: what people bring, and what their threads found.

A case is a function that writes the files of a report into the current folder; `report` registers it with its thread,
the command that its author would have given, and what the thread found: the right verdicts, the cause in words, the
culprit. Cases were built, and "right" written down, from the threads alone, before any answer was seen. Where the
faulty version of an engine cannot be installed, a stand-in misbehaves as the thread describes; cases that are `live`
show a fault of a version that can, and have nothing to tell once that is mended. `bench/reports.py` runs them.
"""

import dataclasses
import importlib
import textwrap
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper, parser

Words = tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Report:
    """One report.

    Attributes:
        thread: Repository and number on GitHub.
        make: Writes the case's files into the current folder; its docstring says what the thread found.
        command: What follows ``triage``.
        right: Verdicts that are right.
        cause: Regular expressions, each of which the answer must hold, whatever its case.
        culprit: Regular expression that the sentence of the verdict or the first culprit must hold; empty where the
            thread names no place.
        needs: Module without which the case cannot be made.
        live: The fault is that of an engine or tool installed here.
        first: The product was mended on it, so that it measures nothing.
    """

    thread: str
    make: Callable[[], None]
    command: str
    right: Words
    cause: Words
    culprit: str = ""
    needs: str = ""
    live: bool = False
    first: bool = False

    @property
    def name(self) -> str:
        """Name of the case, which is that of its function."""
        return self.make.__name__.replace("_", "-")


REPORTS: dict[str, Report] = {}
SECOND = ("converted", "kernels", "narrow")
THIRD = ("providers", "frameworks", "boards", "compilers")
FOURTH = ("fourth", "fourth_programs")
FIFTH = ("fifth", "fifth_held")
SIXTH = ("sixth", "sixth_held")
SEVENTH = ("seventh", "seventh_held")
EIGHTH = ("eighth", "eighth_held")
NINTH = ("ninth", "ninth_held")
TARGET = "diagnose model.onnx --inputs inputs.npz --target "
FILE = "diagnose model.onnx --target-model target.onnx --inputs inputs.npz --target onnxruntime"
PYTORCH = "diagnose model.onnx --torch net.py:make --inputs inputs.npz --target onnxruntime"


def report(
    thread: str,
    command: str,
    right: Words,
    cause: Words,
    culprit: str = "",
    *,
    needs: str = "",
    live: bool = False,
    first: bool = False,
) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Register the function below as a case."""

    def registered(make: Callable[[], None]) -> Callable[[], None]:
        one = Report(thread, make, command, right, cause, culprit, needs, live, first)
        REPORTS[one.name] = one
        return make

    return registered


def reports() -> dict[str, Report]:
    """Return every case by name."""
    later = (*SECOND, *THIRD, *FOURTH, *FIFTH, *SIXTH, *SEVENTH, *EIGHTH, *NINTH)
    modules = ("exporters", "quantization", "formats", "engines", "programs", "first", *later)
    for module in modules:
        importlib.import_module(f"reports.{module}")
    return REPORTS


def model(text: str, *, opset: int = 17, domain: str = "", **weights: np.ndarray) -> onnx.ModelProto:
    """Return a model of ONNX's text syntax, ``(inputs) => (outputs) { nodes }``, with names as exporters give."""
    extra = f', "{domain}": 1' if domain else ""
    made = parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}{extra}]> g {text}')
    made.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    for node in made.graph.node:
        node.name = f"/{node.op_type}_{node.output[0]}"
    return made


def save(made: onnx.ModelProto, name: str = "model.onnx") -> None:
    """Check a model and write it."""
    onnx.checker.check_model(made)
    onnx.save(made, name)


def changed(made: onnx.ModelProto, node: str, **attributes: object) -> onnx.ModelProto:
    """Return a copy in which a node has other attributes."""
    copy = onnx.ModelProto.FromString(made.SerializeToString())
    (one,) = (n for n in copy.graph.node if n.name == node)
    kept = [a for a in one.attribute if a.name not in attributes]
    del one.attribute[:]
    one.attribute.extend([*kept, *(helper.make_attribute(k, v) for k, v in attributes.items() if v is not None)])
    return copy


def reweighted(made: onnx.ModelProto, **weights: np.ndarray) -> onnx.ModelProto:
    """Return a copy with other numbers in some of its initializers."""
    copy = onnx.ModelProto.FromString(made.SerializeToString())
    for tensor in copy.graph.initializer:
        if tensor.name in weights:
            tensor.CopyFrom(numpy_helper.from_array(weights[tensor.name], tensor.name))
    return copy


def inputs(file: str = "inputs.npz", **arrays: np.ndarray) -> None:
    """Write one feed."""
    np.savez(file, **arrays)


def script(name: str, text: str) -> None:
    """Write a file of Python."""
    Path(name).write_text(textwrap.dedent(text))


def program(feed: str = "feed", results: str = "results", before: str = "") -> None:
    """Write ``app.py``, a user's program with these expressions of its feed and of its results, and lines before it."""
    script(
        "app.py",
        f"""
        import os
        import numpy as np
        import onnxruntime

        {before}

        class Session:
            def __init__(self, path):
                self.network = onnxruntime.InferenceSession(path)
                self.names = [o.name for o in self.network.get_outputs()]

            def run(self, feed):
                feed = {feed}
                results = dict(zip(self.names, self.network.run(self.names, feed)))
                return {results}


        class App:
            def compile(self, model_path, options):
                return Session(str(model_path))
        """,
    )


def feeding(image: str) -> None:
    """Write ``app.py``, a user's program that feeds ONNX Runtime this expression of ``image``."""
    program('feed | {"image": changed(feed["image"])} if "image" in feed else feed',
            before=f"changed = lambda image: np.ascontiguousarray({image}, np.float32)")  # fmt: skip


def detector(image: str = "images", output: str = "output", scores: float = -1) -> onnx.ModelProto:
    """Return a network that joins 64 boxes in pixels of 640 with five scores, whose logits are moved by a number."""
    return model(
        f"""(float[1,3,32,32] {image}) => (float[1,9,64] {output}) {{
        c1 = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>({image}, w1)
        a1 = Relu(c1)
        c2 = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(a1, w2)
        a2 = Relu(c2)
        box = Conv<kernel_shape=[1,1]>(a2, wb)
        cls = Conv<kernel_shape=[1,1]>(a2, wc, bc)
        flat = Reshape(box, four)
        flags = Reshape(cls, five)
        near = Sigmoid(flat)
        xywh = Mul(near, pixels)
        score = Sigmoid(flags)
        {output} = Concat<axis=1>(xywh, score) }}""",
        w1=normal(1, 16, 3, 3, 3, scale=0.3), w2=normal(2, 24, 16, 3, 3, scale=0.1),
        wb=normal(3, 4, 24, 1, 1, scale=0.3), wc=normal(4, 5, 24, 1, 1, scale=0.3), bc=np.full(5, scores, np.float32),
        four=np.array([1, 4, 64]), five=np.array([1, 5, 64]), pixels=np.array(640, np.float32),
    )  # fmt: skip


def rewriting(edit: str) -> None:
    """Write ``engine.py``: ONNX Runtime on a model ``made``, of which `edit` changes every ``node``."""
    Path("engine.py").write_text(
        "import numpy as np\nimport onnx\nimport onnxruntime\nfrom onnx import helper, numpy_helper\n\n\n"
        "class Engine:\n"
        "    def compile(self, model_path, options):\n        made = onnx.load(model_path)\n"
        "        for node in made.graph.node:\n"
        + textwrap.indent(textwrap.dedent(edit), " " * 12)
        + "\n        self.session = onnxruntime.InferenceSession(made.SerializeToString())\n        return self\n\n"
        "    def run(self, feed):\n        names = [o.name for o in self.session.get_outputs()]\n"
        "        return dict(zip(names, self.session.run(names, feed)))\n"
    )


def planted(engine: str = "FaultyEngine") -> None:
    """Write ``engine.py`` with a stand-in of `tensortriage_testing`."""
    Path("engine.py").write_text(f"from tensortriage_testing import {engine} as Engine  # noqa: F401\n")


def normal(seed: int, *shape: int, scale: float = 1.0) -> np.ndarray:
    """Return normal numbers in float32."""
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)

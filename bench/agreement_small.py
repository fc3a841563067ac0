"""Small networks for `agreement.py` as files: model, feed, engines behind scripts, saved outputs, other files."""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from agreement_networks import NETWORKS, Network
from onnx import helper, numpy_helper, parser

from tensortriage_testing import quantized

ENGINE = """
import numpy as np
import onnxruntime


class Engine:
    def compile(self, model, options):
        self.session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
        self.names = [each.name for each in self.session.get_outputs()]
        return self

    def run(self, feed):
        c = dict(zip(self.names, self.session.run(self.names, dict(feed))))
        CHANGE
        return c
"""

FAULTY = "from tensortriage_testing import FaultyEngine as Engine\n"


@dataclasses.dataclass(frozen=True)
class Made:
    """The files of a case, and the words of its engines.

    Attributes:
        model: ONNX file.
        feeds: File of the feed; None where it is to be made up.
        target: Spec of the target; of saved outputs, a script that makes them.
        reference: Spec of the reference; empty for the usual one.
        target_model: Another file that the target runs.
        saved: Saved outputs in place of the target, for `run`.
    """

    model: Path
    feeds: Path | None
    target: str
    reference: str = ""
    target_model: Path | None = None
    saved: Path | None = None


def names() -> list[str]:
    """Return every question, as ``NETWORK/NUMBER``."""
    return [f"{name}/{number}" for name, network in NETWORKS.items() for number in range(len(network.asked))]


def right(name: str) -> Sequence[int]:
    """Return the exit codes of which both commands must give the same one."""
    network, number = name.split("/")
    return list(NETWORKS[network].asked.values())[int(number)]


def made(name: str, folder: Path) -> Made:
    """Write the files of a question."""
    word, number = name.split("/")
    network, rng = NETWORKS[word], np.random.default_rng(sum(map(ord, word)))
    target = list(network.asked)[int(number)]
    feed = {name: draw(rng) for name, draw in network.inputs.items()}
    proto = _proto(word, network, feed, {name: draw(rng) for name, draw in network.weights.items()})
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(proto, folder / "model.onnx")
    np.savez(folder / "feed.npz", **feed)
    spec, change = target.split(": ", 1) if ": " in target else (target, "")
    found = Made(
        folder / "model.onnx", None if word.startswith("made-up") else folder / "feed.npz",
        _engine(folder / "target.py", target), _engine(folder / "reference.py", network.reference),
    )  # fmt: skip
    if spec == "saved":
        found = dataclasses.replace(found, saved=folder / "saved.npz")
        scope = {"c": _outputs(proto, feed), "np": np}
        exec(change, scope)  # the table's own words
        np.savez(folder / "saved.npz", **scope["c"])
    if spec in ("file", "int8"):
        file = quantized(proto, feed) if spec == "int8" else proto
        stored = {each.name: each for each in file.graph.initializer}
        numbers = {name: numpy_helper.to_array(each).copy() for name, each in stored.items()}
        exec(change, {"m": numbers, "np": np})
        for weight, each in stored.items():
            each.CopyFrom(numpy_helper.from_array(numbers[weight], weight))
        onnx.save(file, folder / "file.onnx")
        found = dataclasses.replace(found, target_model=folder / "file.onnx", target="onnxruntime")
    return found


def _proto(name: str, network: Network, feed: Mapping[str, Any], weights: Mapping[str, Any]) -> onnx.ModelProto:
    text = re.sub(r"^(?:(\w+), )?(\w+) = ", lambda m: f"[{m[2]}] {m[0]}", network.body, flags=re.MULTILINE)
    inputs = ", ".join(f"{_type(array)} {name}" for name, array in feed.items())
    head = f'<ir_version: 8, opset_import: ["": 17]> {name.replace("-", "_")}'
    model = parser.parse_model(f"{head} ({inputs}) => ({network.outputs}) {{ {text} }}")
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items())
    return model


def _type(array: np.ndarray) -> str:
    kind = onnx.TensorProto.DataType.Name(helper.np_dtype_to_tensor_dtype(array.dtype)).lower()
    return f"{kind}[{', '.join(map(str, array.shape))}]"


def _outputs(proto: onnx.ModelProto, feed: Mapping[str, Any]) -> dict[str, Any]:
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    outputs = [each.name for each in session.get_outputs()]
    return dict(zip(outputs, session.run(outputs, dict(feed)), strict=True))


def _engine(file: Path, words: str) -> str:
    """Return a spec of an engine in the table's words, and write its script."""
    kind, _, rest = words.partition(":")
    if kind == "faulty":
        file.write_text(FAULTY)
        return f"script:{file},{rest}"
    if kind in ("script", "saved"):
        file.write_text(ENGINE.replace("CHANGE", rest.strip() or "pass"))
        return f"script:{file}:Engine"
    return words

"""The models of the truth corpus, generated when first asked for and kept in bench/models/truth.

Exported networks (`truth_networks`), the builders of `tensortriage_testing`, the digit models of examples/, the light
models of the onnx package with drawn weights, and a seeded sample of ONNX's backend tests of single operators.
"""

import dataclasses
import shutil
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import onnx
from healthy import LIGHT, dressed, image_for

from tensortriage_testing import conv_net, encoder, feed_for, mlp, quantized, residual_dag, save_model

HOME = Path(__file__).parent / "models" / "truth"
EXAMPLES = Path(__file__).parent.parent / "examples"
EXPORTED = ("resnet", "mobilenet", "vit", "bert", "llama", "lstm", "unet")
LIGHT_NAMES = ("squeezenet", "resnet50", "shufflenet", "densenet121", "inception_v1", "inception_v2")
BUILDERS: Mapping[str, Callable[[], onnx.ModelProto]] = {
    "mlp": lambda: mlp(width=48),
    "residual_dag": lambda: residual_dag(60),
    "conv_net": lambda: conv_net(blocks=2, channels=12),
    "encoder": lambda: encoder(layers=2, width=48, heads=4, tokens=16, vocabulary=100),
    "encoder_ln": lambda: encoder(layers=2, width=48, heads=4, tokens=16, vocabulary=100, decomposed_layernorm=False),
    "quantized": lambda: quantized(conv_net(blocks=1, channels=12), feed_for(conv_net(blocks=1, channels=12))),
}
NEWEST_OPSET = 23
"""Operator sets that every ONNX Runtime from 1.23 on knows."""

NODE_TESTS = 40
"""Backend tests of single operators in the corpus."""


@dataclasses.dataclass(frozen=True)
class Subject:
    """A model that nothing is wrong with.

    Attributes:
        name: Unique.
        model: ONNX file.
        feed: Its inputs, npz.
    """

    name: str
    model: Path
    feed: Path

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the feed."""
        return dict(np.load(self.feed))


def subject(name: str) -> Subject:
    """Return a model of the corpus, written to disk if it is not there yet.

    Raises:
        KeyError: For a name that is not in the corpus.
    """
    found = Subject(name, HOME / f"{name}.onnx", HOME / f"{name}.npz")
    if not (found.model.is_file() and found.feed.is_file()):
        HOME.mkdir(parents=True, exist_ok=True)
        feed = _written(name, found.model)
        np.savez(found.feed, **feed)  # type: ignore[arg-type] # arrays by name
    return found


def names() -> list[str]:
    """Return the names of all models, those of single operators last."""
    return [*EXPORTED, *BUILDERS, "digits_vit", "digits_cnn", *(f"light_{name}" for name in LIGHT_NAMES), *node_tests()]


def _written(name: str, path: Path) -> Mapping[str, np.ndarray]:
    if name in EXPORTED:
        return exported(name, path)
    if name in BUILDERS:
        save_model(BUILDERS[name](), path)
        return feed_for(onnx.load(path))
    if name.startswith("digits"):
        shutil.copy(EXAMPLES / f"{name}.onnx", path)
        wanted = {value.name for value in onnx.load(path).graph.input}
        return {key: array[:1] for key, array in np.load(EXAMPLES / "digits.npz").items() if key in wanted}
    if name.startswith("light_"):
        model = dressed(onnx.load(LIGHT / f"{name}.onnx"))
        onnx.save(model, path)
        return image_for(model)
    case = _node_cases()[name]
    onnx.save(case.model, path)
    inputs, _ = case.data_sets[0]
    return {v.name: np.asarray(array) for v, array in zip(case.model.graph.input, inputs, strict=True)}


def exported(name: str, path: Path) -> Mapping[str, np.ndarray]:
    """Export one of `truth_networks` and return its inputs."""
    import torch
    from truth_networks import network

    module, feed = network(name)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the exporter, about itself
        count = len(module(*feed.values())) if name == "bert" else 1
        torch.onnx.export(
            module, tuple(feed.values()), str(path), input_names=list(feed), dynamo=False, opset_version=17,
            output_names=[f"y{i}" for i in range(count)], do_constant_folding=True,
        )  # fmt: skip
    return {key: value.numpy() for key, value in feed.items()}


def node_tests() -> list[str]:
    """Return a seeded sample of the backend tests whose inputs and outputs are tensors of plain types."""
    usable = sorted(_node_cases())
    rng = np.random.default_rng(12)
    return [usable[index] for index in rng.permutation(len(usable))[:NODE_TESTS]]


_CASES: dict[str, object] = {}


def _node_cases() -> dict[str, object]:
    if not _CASES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of numpy, about overflows that ONNX's authors want
            from onnx.backend.test.case.node import collect_testcases

            _CASES.update({case.name: case for case in collect_testcases(None) if _plain(case)})
    return _CASES


def _plain(case) -> bool:  # type: ignore[no-untyped-def] # ONNX's class
    known = all(o.domain in ("", "ai.onnx") and o.version <= NEWEST_OPSET for o in case.model.opset_import)
    if not known or not case.data_sets or case.model.functions:
        return False
    inputs, outputs = case.data_sets[0]
    kinds = (np.float32, np.int64, np.int32, np.bool_)
    plain = all(isinstance(a, np.ndarray) and a.dtype.type in kinds and a.size for a in (*inputs, *outputs))
    random = any(
        node.op_type in ("RandomNormal", "Bernoulli", "Multinomial", "Dropout") for node in case.model.graph.node
    )
    return (
        plain
        and not random
        and any(a.dtype == np.float32 for a in outputs)
        and len(inputs) == len(case.model.graph.input)
    )

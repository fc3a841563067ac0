"""The models of the truth corpus, generated when first asked for and kept in bench/models/truth.

Networks of the table (`networks`): those exported, the builders of `tensortriage_testing`, the digit models of
examples/, light models of the onnx package; and a seeded sample of ONNX's backend tests of single operators.
"""

import dataclasses
import warnings
from pathlib import Path

import networks
import numpy as np
from networks.made import Made

HOME = Path(__file__).parent / "models" / "truth"
EXPORTED = tuple(networks.short(networks.names("corpus")))
LIGHT_NAMES = ("squeezenet", "resnet50", "shufflenet", "densenet121", "inception_v1", "inception_v2")
WHOLE = {
    name.partition("/")[2]: name
    for name in (
        *networks.names("corpus"), *networks.names("testing"), "digits/digits_vit", "digits/digits_cnn",
        *(f"light/light_{name}" for name in LIGHT_NAMES),
    )
}  # fmt: skip
"""Networks of the table by their names here."""

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
        made = networks.network(WHOLE[name]) if name in WHOLE else _node_test(name)
        np.savez(found.feed, **made.write(found.model))  # type: ignore[arg-type] # arrays by name
    return found


def _node_test(name: str) -> Made:
    case = _node_cases()[name]
    inputs, _ = case.data_sets[0]
    return Made(case.model, {v.name: array for v, array in zip(case.model.graph.input, inputs, strict=True)})


def names() -> list[str]:
    """Return the names of all models, those of single operators last."""
    return [*WHOLE, *node_tests()]


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

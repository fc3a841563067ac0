"""The planted-fault suite: every kind of fault in every family of models, with the verdict that is right for it.

A tool that names culprits is judged by culprits that are known. Each case here is a model, data, and a target that is
wrong in one known way: a wrong op, ops wrong only when fused, a build or run that fails, numbers a format cannot hold,
a changed model, a bad scale, a reference that is wrong itself, and data on which a healthy model fails. A fault that
nobody could see is no fault: numeric ones are planted where an output is off by more than ten times what a healthy
engine's is. Everything follows from the seed::

    for case in planted_cases(folder, families=["encoder"], kinds=["scale", "nan"]):
        print(case.name, case.verdicts, case.culprits)
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from tensortriage.errors import EngineError, UsageError
from tensortriage.testing.faulty_engine import FaultyEngine
from tensortriage.testing.graph_writer import ModelProto, NodeProto
from tensortriage.testing.models import conv_net, encoder, feed_for, mlp, residual_dag, save_model
from tensortriage.testing.quantized_models import quantized

VISIBLE = 10.0
"""Multiple of a healthy engine's error from which a fault shows: what a verdict promises to see."""

HEALTHY_ERROR = 1e-6
"""Relative RMS error that healthy fp32 engines stay below on these models; measured ones are 1e-7 to 5e-7."""

PLAIN = "onnxruntime:optimization=none"

ENGINES = {
    "faulty.py": "from tensortriage.testing import FaultyEngine as Engine\n",
    "varying.py": "from tensortriage.testing import VaryingEngine as Engine\n",
    "swapping.py": '''"""ONNX Runtime that confuses the first output with the second."""
from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine


class Session:
    def __init__(self, session):
        self.session = session

    def run(self, feed):
        found = dict(self.session.run(feed))
        names = list(found)
        if {FIRST, SECOND} <= found.keys():
            found[FIRST], found[SECOND] = found[SECOND], found[FIRST]
        return {name: found[name] for name in names}


class Engine:
    def compile(self, model, options):
        return Session(OnnxRuntimeEngine().compile(model, {"optimization": "none"}))
''',
}


@dataclasses.dataclass(frozen=True, slots=True)
class Planted:
    """One case of the suite.

    Attributes:
        family: Family of the model.
        kind: What is wrong; a row of the confusion matrix.
        verdicts: The right verdict, and others that are as right.
        culprits: Nodes of which one must be named first; empty when there is none to name.
        model: ONNX file.
        feeds: File of the data.
        target: Spec of the engine under suspicion.
        reference: Spec of the engine taken as right.
        target_model: What the target runs, when that is another file.
        seconds: Time limit for one build or run; None for the usual ones.
        builds: How often to build again; None for the usual number.
    """

    family: str
    kind: str
    verdicts: tuple[str, ...]
    culprits: tuple[str, ...]
    model: Path
    feeds: Path
    target: str
    reference: str = PLAIN
    target_model: Path | None = None
    seconds: float | None = None
    builds: int | None = None

    @property
    def name(self) -> str:
        """Family and kind."""
        return f"{self.family}/{self.kind}"


FAMILIES: Mapping[str, Callable[[int], ModelProto]] = {
    "conv_net": lambda seed: conv_net(blocks=2, channels=10, seed=seed),
    "encoder": lambda seed: encoder(layers=1, width=32, heads=2, tokens=14, vocabulary=100, seed=seed),
    "residual_dag": lambda seed: residual_dag(40, width=14, seed=seed),
    "mlp": lambda seed: mlp(width=34, seed=seed),
    "quantized": lambda seed: quantized(mlp(seed=seed), feed_for(mlp(seed=seed), seed=seed)),
}
"""Families of models by name; small, because every case is a whole diagnosis."""


@dataclasses.dataclass(frozen=True)
class PlantedSubject:
    """One model of a family, written to a folder with its data.

    Attributes:
        family: Its family.
        folder: Where everything goes.
        proto: The model.
        seed: Chooses nodes.
    """

    family: str
    folder: Path
    proto: ModelProto
    seed: int

    @classmethod
    def written(cls, family: str, folder: Path, seed: int) -> "PlantedSubject":
        """Build a model and write it, one feed, two feeds, and the engines."""
        folder.mkdir(parents=True, exist_ok=True)
        found = cls(family, folder, FAMILIES[family](seed), seed)
        save_model(found.proto, found.model)
        one, other = (feed_for(found.proto, seed=seed + number) for number in (0, 1))
        np.savez(found.feeds, **one)  # type: ignore[arg-type] # arrays by name
        np.savez(found.two_feeds, **{name: np.stack([one[name], other[name]]) for name in one})  # type: ignore[arg-type] # likewise
        for name, text in ENGINES.items():
            (folder / name).write_text(text, encoding="utf-8")
        return found

    @property
    def model(self) -> Path:
        """The ONNX file."""
        return self.folder / "model.onnx"

    @property
    def feeds(self) -> Path:
        """One feed."""
        return self.folder / "feed.npz"

    @property
    def two_feeds(self) -> Path:
        """Two feeds."""
        return self.folder / "two.npz"

    def feed(self) -> dict[str, np.ndarray]:
        """Return the one feed."""
        return {name: np.asarray(array) for name, array in np.load(self.feeds).items()}

    def nodes(self, kind: str) -> list[NodeProto]:
        """Return the nodes in the order in which a fault is tried on them: another op type first for every kind."""
        nodes = [node for node in self.proto.graph.node if node.op_type != "Constant"]
        rng = np.random.default_rng([self.seed, *kind.encode()])
        return [nodes[index] for index in rng.permutation(len(nodes))]

    def spec(self, script: str, **options: str) -> str:
        """Return the spec of one of the engines."""
        return f"script:{self.folder / script}:Engine" + "".join(f",{key}={value}" for key, value in options.items())

    def case(self, kind: str, verdicts: Sequence[str], culprits: Sequence[str], target: str, **more: object) -> Planted:
        """Return a case on this model."""
        values = {"model": self.model, "feeds": self.feeds, **more}
        named = (self.family, kind, tuple(verdicts), tuple(culprits))
        return Planted(*named, target=target, **values)  # type: ignore[arg-type] # values are fields of Planted

    def run(self, **options: str) -> Mapping[str, np.ndarray]:
        """Run the faulty engine on the one feed."""
        session = FaultyEngine().compile(self.model, options)
        try:
            return session.run(self.feed())
        finally:
            session.close()

    def shows(self, **options: str) -> bool:
        """Say whether a fault makes an output wrong by what anybody would see; False where it cannot be planted."""
        try:
            right, wrong = self.run(), self.run(**options)
        except (UsageError, EngineError):
            return False
        return any(off(right[name], wrong[name]) > VISIBLE * HEALTHY_ERROR for name in right)


def off(right: np.ndarray, wrong: np.ndarray) -> float:
    """Return the relative RMS error; inf where one is not finite."""
    if not np.isfinite(wrong).all():
        return float("inf")
    right, wrong = right.astype(np.float64), wrong.astype(np.float64)
    return float(np.sqrt(np.mean((wrong - right) ** 2) / max(float(np.mean(right**2)), 1e-30)))

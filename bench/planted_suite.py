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
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from tensortriage.compare.judgement.thresholds import MATCH_FACTOR
from tensortriage.errors import EngineError, UsageError
from tensortriage.model.model import Model
from tensortriage.model.transforms.mark_outputs import mark_outputs, markable
from tensortriage_testing.faulty_engine import FaultyEngine
from tensortriage_testing.graph_writer import GraphProto, ModelProto, NodeProto, with_changed_weight
from tensortriage_testing.models import conv_net, encoder, feed_for, mlp, residual_dag, save_model
from tensortriage_testing.quantized_models import quantized

VISIBLE = MATCH_FACTOR
"""Multiple of a healthy engine's error from which a fault shows: what a verdict promises to see."""

HEALTHY_ERROR = 1e-6
"""Relative RMS error that healthy fp32 engines stay below on these models; measured ones are 1e-7 to 5e-7."""

PLAIN = "onnxruntime:optimization=none"

ENGINES = {
    "faulty.py": "from tensortriage_testing import FaultyEngine as Engine\n",
    "varying.py": "from tensortriage_testing import VaryingEngine as Engine\n",
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
        reference: Spec of the engine assumed to be right.
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


_LOCAL = ("local-fault",)
_PLACES = ("layout",)
NUMERIC: Mapping[str, tuple[str, ...]] = {
    "scale": _LOCAL, "offset": _LOCAL, "noise": _LOCAL, "sign": _LOCAL, "saturate": _LOCAL, "clip": _LOCAL,
    "flush": _LOCAL, "coarse": _LOCAL, "off-by-one": (*_LOCAL, *_PLACES), "zero-tail": _LOCAL, "tile-tail": _LOCAL,
    "broadcast": _LOCAL, "permute": (*_PLACES, *_LOCAL), "channels-last": (*_PLACES, *_LOCAL), "wrong-axis": _LOCAL,
    "bf16-accumulate": _LOCAL, "nan": ("non-finite",), "inf": ("non-finite",),
    "nondeterministic": ("nondeterministic-run",), "warm-up": ("nondeterministic-run",),
    "stale": ("nondeterministic-run",),
}  # fmt: skip
"""Kinds that make numbers wrong, and their right verdicts. Right numbers in wrong places are named by place when the
permutation is recognised; to call them a wrong op is right too."""

QUANTIZERS = ("QuantizeLinear", "DequantizeLinear")
"""Operators of which a wrong one is `quantization` as well."""

FAILING = {
    "crash": "engine-crash", "out-of-memory": "engine-crash", "hang": "engine-hang",
    "build-failure": "build-failed", "build-crash": "engine-crash", "build-hang": "engine-hang",
}  # fmt: skip
"""Kinds that leave no answer."""

HANG_SECONDS = 4.0

BUILDS = 16
"""Builds of an engine that draws one of three tactics per node. Among 40 nodes, 120 tactics, some go with failure by
chance; with five or six bad builds of 16 that is 120 * (1/3)^5.3 * (2/3)^10.7, or less than one case in a hundred."""


def planted_cases(
    folder: Path, *, families: Sequence[str] = (), kinds: Sequence[str] = (), seed: int = 0
) -> Iterator[Planted]:
    """Yield the cases of the suite, written to a folder.

    Args:
        folder: For models, data and engines.
        families: Names of `FAMILIES`; all by default.
        kinds: Kinds wanted; all by default. A family has no case of a kind that shows in none of its nodes.
        seed: Of weights, data and places.
    """
    for family in families or FAMILIES:
        subject = PlantedSubject.written(family, folder / family, seed)
        for kind, make in makers().items():
            if not kinds or kind in kinds:
                found = make(subject, kind)
                if found is not None:
                    yield found


def makers() -> Mapping[str, Callable[[PlantedSubject, str], Planted | None]]:
    """Return what makes each kind of case."""
    return {
        **dict.fromkeys(NUMERIC, numeric),
        **dict.fromkeys(FAILING, failing),
        "fusion": fusion, "level": level, "intermittent": intermittent, "in-bf16": in_bf16, "rounding": rounding,
        "overflow": overflow, "changed": changed, "wrong-reference": wrong_reference, "swapped-outputs": swapped,
        "input-sensitive": input_sensitive, "bad-scale": bad_scale,
    }  # fmt: skip


def numeric(subject: PlantedSubject, kind: str) -> Planted | None:
    """A wrong op."""
    two = NUMERIC[kind] == ("nondeterministic-run",)
    probe = "scale" if two else kind
    fed = _fed(subject.proto.graph)
    for node in subject.nodes(kind):
        if kind == "stale" and node.name not in fed:  # the numbers of an earlier run are those of any run
            continue
        if subject.shows(kind=probe, node=node.name):
            target = subject.spec("faulty.py", kind=kind, node=node.name)
            feeds = subject.two_feeds if two else subject.feeds
            return subject.case(kind, verdicts_on(node, NUMERIC[kind]), [node.name], target, feeds=feeds)
    return None


def _fed(graph: GraphProto) -> set[str]:
    """Return the nodes whose results depend on an input."""
    constants = {tensor.name for tensor in graph.initializer}
    reached, nodes = {value.name for value in graph.input} - constants, set()
    for node in graph.node:
        if reached & {*node.input}:
            reached.update(node.output)
            nodes.add(node.name)
    return nodes


def verdicts_on(node: NodeProto, verdicts: Sequence[str] = _LOCAL) -> list[str]:
    """Return the right verdicts on a wrong op."""
    return [*verdicts, *(["quantization"] if "local-fault" in verdicts and node.op_type in QUANTIZERS else [])]


def failing(subject: PlantedSubject, kind: str) -> Planted:
    """An engine that gives no answer."""
    target = subject.spec("faulty.py", kind=kind, node=subject.nodes(kind)[0].name)
    seconds = HANG_SECONDS if "hang" in kind else None
    return subject.case(kind, [FAILING[kind]], [], target, seconds=seconds)


def fusion(subject: PlantedSubject, kind: str) -> Planted | None:
    """Two neighbours that are wrong only while nothing between them is marked."""
    makers_of = {output: node for node in subject.proto.graph.node for output in node.output}
    for node in subject.nodes(kind):
        for before in (makers_of[name] for name in node.input if name in makers_of):
            options = {"kind": "scale", "node": node.name, "fused_with": before.name}
            if before.op_type != "Constant" and subject.shows(**options):
                target = subject.spec("faulty.py", **options)
                return subject.case(kind, ["fusion-fault"], [node.name, before.name], target)
    return None


def level(subject: PlantedSubject, kind: str) -> Planted | None:
    """An op that is wrong once the engine optimizes."""
    for node in subject.nodes(kind):
        if subject.shows(kind="scale", node=node.name):
            options = {"kind": "scale", "node": node.name, "from_level": "basic", "optimization": "all"}
            return subject.case(kind, verdicts_on(node), [node.name], subject.spec("faulty.py", **options))
    return None


def intermittent(subject: PlantedSubject, kind: str) -> Planted | None:
    """An op that is wrong in one build of three."""
    for node in subject.nodes(kind):
        if subject.shows(kind="scale", node=node.name):
            draws = subject.folder / "draws"
            draws.unlink(missing_ok=True)
            target = subject.spec("varying.py", kind="scale", node=node.name, draws=str(draws))
            return subject.case(kind, ["intermittent"], [node.name], target, builds=BUILDS)
    return None


def in_bf16(subject: PlantedSubject, kind: str) -> Planted | None:
    """A wrong op among results that are rounded to bf16: its error must stand out of theirs."""
    for node in subject.nodes(kind):
        options = {"kind": "scale", "node": node.name, "amount": "1.5", "precision": "bf16"}
        try:
            rounded, wrong, right = subject.run(precision="bf16"), subject.run(**options), subject.run()
        except (UsageError, EngineError):
            continue
        if any(off(right[name], wrong[name]) > VISIBLE * off(right[name], rounded[name]) for name in right):
            return subject.case(kind, verdicts_on(node), [node.name], subject.spec("faulty.py", **options))
    return None


def rounding(subject: PlantedSubject, kind: str) -> Planted:
    """A healthy engine of a narrow format."""
    return subject.case(kind, ["rounding", "match"], [], "emulate:precision=bf16")


def overflow(subject: PlantedSubject, kind: str) -> Planted | None:
    """A weight so large that fp16 cannot hold a product."""
    return _reweighed(subject, kind, lambda weight: weight * np.float32(3e5), ["range-overflow"], own=True)


def changed(subject: PlantedSubject, kind: str) -> Planted | None:
    """A file whose weight is another one than in the model."""
    return _reweighed(subject, kind, lambda weight: weight[::-1].copy(), ["model-changed"], own=False)


def _reweighed(
    subject: PlantedSubject,
    kind: str,
    change: Callable[[np.ndarray], np.ndarray],
    verdicts: Sequence[str],
    *,
    own: bool,
) -> Planted | None:
    weights = {weight.name: weight for weight in subject.proto.graph.initializer}
    for node in subject.nodes(kind):
        if node.op_type not in ("MatMul", "Gemm", "Conv") or node.input[1] not in weights:
            continue
        other = with_changed_weight(subject.proto, node.input[1], change)
        path = save_model(other, subject.folder / f"{kind}.onnx")
        if own:
            return subject.case(kind, verdicts, [node.name], "emulate:precision=fp16", model=path)
        return subject.case(kind, verdicts, [node.name], PLAIN, target_model=path)
    return None


def wrong_reference(subject: PlantedSubject, kind: str) -> Planted | None:
    """A right target against a reference with a wrong op."""
    for node in subject.nodes(kind):
        if node.op_type in ("MatMul", "Gemm", "Conv") and subject.shows(kind="scale", node=node.name):
            reference = subject.spec("faulty.py", kind="scale", node=node.name)
            return subject.case(kind, ["comparison-unsound"], [node.name], "onnxruntime", reference=reference)
    return None


def swapped(subject: PlantedSubject, kind: str) -> Planted | None:
    """Two outputs of one shape that change places."""
    model = Model.load(subject.model)
    feed = subject.feed()
    session = FaultyEngine().compile(mark_outputs(model, markable(model)).save(subject.folder / "marked.onnx"), {})
    values = {name: array for name, array in session.run(feed).items() if array.dtype == np.float32 and array.ndim > 1}
    session.close()
    pairs = itertools.combinations(values, 2)
    pair = next(
        ((a, b) for a, b in pairs if values[a].shape == values[b].shape and off(values[a], values[b]) > 0.5), None
    )
    if pair is None:
        return None
    path = mark_outputs(model, pair).save(subject.folder / f"{kind}.onnx")
    text = ENGINES["swapping.py"].replace("FIRST", repr(pair[0])).replace("SECOND", repr(pair[1]))
    (subject.folder / "swapping.py").write_text(text, encoding="utf-8")
    verdicts = ["layout", "comparison-unsound"]
    return subject.case(kind, verdicts, [], subject.spec("swapping.py"), model=path)


def input_sensitive(subject: PlantedSubject, kind: str) -> Planted | None:
    """An op that is right on small data and clips what random data reach."""
    small = {name: a * np.float32(0.01) if a.dtype == np.float32 else a for name, a in subject.feed().items()}
    if not any(array.dtype == np.float32 for array in small.values()):
        return None
    path = subject.folder / "small.npz"
    np.savez(path, **small)  # type: ignore[arg-type] # arrays by name
    first = next(node for node in subject.proto.graph.node if node.op_type not in (*QUANTIZERS, "Constant"))
    return subject.case(
        kind,
        ["input-sensitive"],
        [],
        subject.spec("faulty.py", kind="clip", node=first.name, amount="0.5"),
        feeds=path,
    )


def bad_scale(subject: PlantedSubject, kind: str) -> Planted | None:
    """A quantized file of which one scale is an eighth of what its values need."""
    if subject.family == "quantized":
        return None
    feed = subject.feed()
    other = quantized(subject.proto, feed)
    scales = [tensor for tensor in other.graph.initializer if tensor.name.endswith("_scale") and not tensor.dims]
    rng = np.random.default_rng([subject.seed, *kind.encode()])
    tensor = scales[int(rng.integers(len(scales)))]
    other = with_changed_weight(other, tensor.name, lambda scale: scale / np.float32(8.0))
    value = tensor.name.removesuffix("_scale")
    path = save_model(other, subject.folder / f"{kind}.onnx")
    pair = [f"{value}_QuantizeLinear", f"{value}_DequantizeLinear"]
    return subject.case(kind, ["quantization"], pair, "onnxruntime", target_model=path)

"""What `agreement.py` asks about: the cases of other benchmarks, and random ones near the limits."""

import dataclasses
import functools
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import agreement_small
import numpy as np
import onnx
from healthy import HEALTHY, TARGETS, subjects
from planted_suite import FAMILIES, PlantedSubject, makers
from truth import LIMITS
from truth_cases import FREEDOMS, accelerator, case_names, made, outputs, size_of
from truth_models import HOME, Subject

from tensortriage.api import FeedRequest, Limits, Model
from tensortriage.model.mixed_precision.convert_precision import convert
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.runs.engine_specs import DEFAULT_REFERENCE
from tensortriage.values.dtype import Precision
from tensortriage_testing import conv_net, encoder, feed_for, mlp, quantized, residual_dag, save_model

FOLDER = HOME / "agreement"
RANDOM = 1000
"""Random cases by name; more of them come with another seed."""

REAL = (
    "onnxruntime", "onnxruntime:optimization=basic", "onnxruntime:optimization=extended",
    "onnxruntime:optimization=layout", "openvino:precision=fp32", "emulate:precision=fp16", "emulate:precision=bf16",
    "onnxruntime:precision=fp16",
)  # fmt: skip
COMPUTING = ("MatMul", "Gemm", "Conv", "Add", "Softmax", "LayerNormalization", "Mul", "Relu")
"""Operators that small faults are planted in."""


@dataclasses.dataclass(frozen=True)
class Question:
    """What both commands are asked.

    Attributes:
        model: ONNX file.
        feeds: File of the feeds; None for made-up ones.
        target: Spec of the engine under suspicion.
        right: The verdicts that are right; near the engine's rounding, those of a healthy and of a wrong one. Of small
            networks, exit codes of which both commands must give the same one.
        size: Of a planted fault, in units of the engine's rounding; 0 where none is, or none was measured.
        reference: Spec of the engine assumed to be right.
        target_model: What the target runs, when that is another file.
        limits: Of builds and runs.
        builds: How often to build again; None for the usual number.
        saved: Saved outputs that `run` is given in place of the target.
    """

    model: Path
    feeds: Path | None
    target: str
    right: Sequence[str | int]
    size: float = 0.0
    reference: str = DEFAULT_REFERENCE
    target_model: Path | None = None
    limits: Limits = LIMITS
    builds: int | None = None
    saved: Path | None = None

    @property
    def feeding(self) -> FeedRequest:
        """The feeds as a command takes them."""
        return FeedRequest(paths=() if self.feeds is None else (str(self.feeds),), most=8)


def _truth_names(seed: int) -> list[str]:
    return [f"truth/{name}" for pair in zip(*case_names(seed), strict=False) for name in pair]


def _truth_case(name: str) -> Question | None:
    case = made(name.removeprefix("truth/"))
    if case is None:
        return None
    return Question(case.subject.model, case.subject.feed, case.target, case.verdicts, case.size)


def _file_names(seed: int) -> list[str]:
    from truth_files_cases import names

    return names(seed)


def _confusion_names(seed: int) -> list[str]:
    return _shuffled([f"confusion/{seed}/{family}/{kind}" for family in FAMILIES for kind in makers()], seed)


def _confusion_case(name: str) -> Question | None:
    _, seed, family, kind = name.split("/")
    planted = makers()[kind](PlantedSubject.written(family, FOLDER / name, int(seed)), kind)
    if planted is None:
        return None
    seconds = planted.seconds
    return Question(
        planted.model, planted.feeds, planted.target, planted.verdicts,
        reference=planted.reference, target_model=planted.target_model, builds=planted.builds,
        limits=LIMITS if seconds is None else Limits(build_seconds=seconds, run_seconds=seconds),
    )  # fmt: skip


def _healthy_index() -> Mapping[str, Sequence[str]]:
    """Return model and feed of the subjects of `healthy.py` by name, written when first asked for."""
    index = FOLDER / "healthy" / "index.json"
    if not index.is_file():
        index.parent.mkdir(parents=True, exist_ok=True)
        found = {one.name: (str(one.model), str(one.feed)) for one in subjects(index.parent, 2)}
        index.write_text(json.dumps(found), encoding="utf-8")
    return json.loads(index.read_text(encoding="utf-8"))  # type: ignore[no-any-return] # as it was written


def _healthy_names(seed: int) -> list[str]:
    return _shuffled([f"healthy/{name}/{target}" for name in _healthy_index() for target in TARGETS], seed)


def _healthy_case(name: str) -> Question:
    _, subject, target = name.split("/")
    model, feed = map(Path, _healthy_index()[subject])
    return Question(model, feed, target, HEALTHY)


def _small_names(_: int) -> list[str]:
    return [f"small/{name}" for name in agreement_small.names()]


def _small_case(name: str) -> Question:
    found = agreement_small.made(name.removeprefix("small/"), FOLDER / name)
    return Question(
        found.model, found.feeds, found.target, agreement_small.right(name.removeprefix("small/")),
        reference=found.reference or DEFAULT_REFERENCE, target_model=found.target_model, saved=found.saved,
    )  # fmt: skip


def _shuffled(names: Sequence[str], seed: int) -> list[str]:
    return [names[index] for index in np.random.default_rng(seed).permutation(len(names))]


def _random_names(seed: int) -> list[str]:
    return [f"random/{seed}/{number}" for number in range(RANDOM)]


def _random_case(name: str) -> Question:
    """A random model on a random engine; every other simulated one with a fault about as small as a limit."""
    rng = np.random.default_rng([int(word) for word in name.split("/")[1:]])
    found = _random_subject(name, rng)
    if rng.random() < 0.3:
        return Question(found.model, found.feed, str(rng.choice(REAL)), HEALTHY)
    freedoms = FREEDOMS[str(rng.choice(list(FREEDOMS)))]
    if rng.random() < 0.5:
        return Question(found.model, found.feed, accelerator(freedoms), HEALTHY)
    nodes = [node.name for node in onnx.load(found.model).graph.node if node.op_type in COMPUTING]
    rounding = 4e-3 if "bf16" in freedoms else 5e-4 if "16" in freedoms or "tf32" in freedoms else 1e-6
    amount = rounding * 10 ** rng.uniform(-0.5, 2.5)
    kind = str(rng.choice(["scale", "offset", "noise"]))
    fault = f"kind={kind},node={rng.choice(nodes)},amount={amount + (kind == 'scale'):.9g}"
    size = size_of(*(_wide(outputs(found, options)) for options in ("", freedoms, f"{freedoms},{fault}")))
    right = (*HEALTHY, "local-fault")  # near the limit nobody knows; the size says how far from it
    return Question(found.model, found.feed, accelerator(f"{freedoms},{fault}"), right, size)


def _wide(arrays: Mapping[str, np.ndarray] | None) -> Mapping[str, np.ndarray]:
    if arrays is None:
        raise ValueError("the accelerator does not run the model")
    return {name: array.astype(np.float32) for name, array in arrays.items()}


def _random_subject(name: str, rng: np.random.Generator) -> Subject:
    """Write a model of a random kind and size, as it is, quantized, or typed fp16, and its feed."""
    seed, few = int(rng.integers(1_000_000)), functools.partial(rng.integers, 1)
    heads = 2 ** int(rng.integers(0, 3))
    builders: Sequence[Callable[[], onnx.ModelProto]] = (
        lambda: mlp(layers=int(few(7)), width=int(rng.integers(8, 160)), features=int(rng.integers(4, 96)),
                    batch=int(few(17)), seed=seed),
        lambda: conv_net(blocks=int(few(4)), channels=int(rng.integers(4, 25)), size=2 * int(rng.integers(4, 13)),
                         batch=int(few(4)), seed=seed),
        lambda: encoder(layers=int(few(3)), heads=heads, width=heads * int(rng.integers(4, 25)), batch=int(few(4)),
                        tokens=int(rng.integers(4, 40)), vocabulary=int(rng.integers(50, 400)),
                        decomposed_layernorm=rng.random() < 0.5, seed=seed),
        lambda: residual_dag(int(rng.integers(5, 90)), width=int(rng.integers(8, 64)), batch=int(few(9)), seed=seed),
    )  # fmt: skip
    proto = builders[int(rng.integers(len(builders)))]()
    feed = feed_for(proto, seed=seed)
    folder = FOLDER / name
    folder.mkdir(parents=True, exist_ok=True)
    found = Subject(name.replace("/", "-"), folder / "model.onnx", folder / "feed.npz")
    np.savez(found.feed, **feed)  # type: ignore[arg-type] # arrays by name
    form = rng.random()
    save_model(quantized(proto, feed) if form < 0.2 else proto, found.model)
    if form > 0.8:
        model = Model.load(found.model)
        half = convert(model, Precision.FP16, specs=value_specs(model), keep_io_types=rng.random() < 0.5)
        os.replace(half.save(folder / "half.onnx"), found.model)
        inputs = {spec.name: spec.dtype.numpy for spec in half.inputs if spec.dtype is not None}
        np.savez(found.feed, **{key: array.astype(inputs[key]) for key, array in feed.items()})  # type: ignore[arg-type] # arrays by name
    return found


SOURCES: Mapping[str, tuple[Callable[[int], list[str]], Callable[[str], Question | None]]] = {
    "truth": (_truth_names, _truth_case),
    "confusion": (_confusion_names, _confusion_case),
    "healthy": (_healthy_names, _healthy_case),
    "random": (_random_names, _random_case),
    "small": (_small_names, _small_case),
    "files": (_file_names, lambda _: None),
}
"""Where cases come from: their names in a seeded order, and what makes one (`agreement.py` asks about files itself)."""

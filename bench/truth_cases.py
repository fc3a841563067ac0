"""The cases of the truth corpus: a model, an engine, and which verdicts and culprits are right for them.

Whether a fault can be seen is measured without the tool: the engine is run in this process with the fault and without
it. The distance of the two, over the distance of the healthy one from ONNX Runtime, is the size of the fault in the
units of the engine's own rounding. Below `HIDDEN` nobody could tell the fault from rounding at the outputs.
"""

import dataclasses
import functools
import itertools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
from planted_suite import NUMERIC, verdicts_on
from truth_models import HOME, Subject, names, subject

from tensortriage.api import TriageError
from tensortriage_testing import SimulatedAccelerator

ENGINE = HOME / "accelerator.py"
ENGINE_TEXT = "from tensortriage_testing import SimulatedAccelerator as Engine\n"
HEALTHY = ("match", "rounding")
HIDDEN = 1.0
"""Size below which a fault is smaller than the engine's own rounding: to acquit the engine is right too."""
LEAST_ERROR = 1e-7
"""Relative error that no fp32 engine stays below for sure: about one rounding."""

SMALL_LIGHT = ("light_squeezenet", "light_shufflenet")
"""Light models that simulated accelerators run in seconds."""

REAL = (
    "onnxruntime:optimization=basic", "onnxruntime:optimization=extended", "onnxruntime:optimization=layout",
    "onnxruntime", "openvino:precision=fp32", "openvino:precision=bf16", "emulate:precision=fp16",
    "emulate:precision=bf16",
)  # fmt: skip
FREEDOMS: Mapping[str, str] = {
    "tf32": "precision=tf32",
    "tf32-truncated": "precision=tf32,operands=tf32-truncated",
    "bf16x3": "operands=bf16x3",
    "split-sums": "block=32",
    "reversed-sums": "order=reversed",
    "sequential-sums": "order=sequential",
    "truncating-sums": "block=16,rounding=zero",
    "winograd2": "winograd=2",
    "winograd4": "winograd=4",
    "fast-math": "functions=exp:fast+softmax:fast+pow:fast+log:fast+sqrt:approx+div:fast+reciprocal:approx",
    "tensorrt-math": "functions=tanh:tensorrt+sigmoid:tensorrt+pow:fast",
    "npu-math": "functions=softmax:5e-6+sqrt:2e-6+tanh:2e-6+erf:2e-6+sigmoid:5e-6",
    "tanh.approx": "functions=tanh:approx+sigmoid:tanh",
    "gelu-tanh": "functions=gelu:tanh",
    "fused": "fused=true",
    "flushed": "denormals=flush",
    "ties-away": "ties=away",
    "exact-sums": "accumulator=fp64",
    "fp16": "precision=fp16",
    "fp16-acc16": "precision=fp16,accumulator=fp16,block=16",
    "fp16-acc64": "precision=fp16,accumulator=fp16,block=64",
    "fp16-acc32-truncated": "precision=fp16,accumulator=fp16,block=32,rounding=zero",
    "fp16-fused": "precision=fp16,accumulator=fp16,block=32,fused=true,functions=gelu:tanh+softmax:fast",
    "fp16-winograd": "precision=fp16,winograd=2",
    "bf16": "precision=bf16",
    "bf16-acc32": "precision=bf16,accumulator=bf16,block=32",
    "bf16-fused": "precision=bf16,fused=true",
}
"""Options of the simulated accelerator by the name of what it is free in."""

SUFFERING = ("reversed-sums", "tf32", "fp16-acc16", "bf16", "fast-math")
"""Freedoms of the engines that faults are planted in."""

FAULTS: Sequence[tuple[str, Mapping[str, str], Sequence[str]]] = (
    ("scale-1.005", {"kind": "scale", "amount": "1.005"}, ("MatMul", "Gemm", "Conv")),
    ("scale-1.02", {"kind": "scale", "amount": "1.02"}, ("MatMul", "Gemm", "Conv")),
    ("scale-1.1", {"kind": "scale", "amount": "1.1"}, ("MatMul", "Gemm", "Conv")),
    ("scale-1.5", {"kind": "scale", "amount": "1.5"}, ()),
    ("offset-0.02", {"kind": "offset", "amount": "0.02"}, ()),
    ("noise-0.01", {"kind": "noise", "amount": "0.01"}, ()),
    ("noise-0.1", {"kind": "noise", "amount": "0.1"}, ()),
    ("off-by-one", {"kind": "off-by-one"}, ("Slice", "Gather", "Transpose", "Concat", "Reshape")),
    ("row", {"kind": "row"}, ("MatMul", "Gemm", "Conv", "Add")),
    ("tile-8", {"kind": "tile", "amount": "8"}, ("MatMul", "Gemm", "Conv")),
    ("epsilon-0.1", {"kind": "epsilon"}, ("LayerNormalization", "BatchNormalization", "Add")),
    ("shape", {"kind": "shape"}, ("ReduceMean", "Softmax", "MatMul", "Gemm", "Add", "Unsqueeze")),
    ("zero-tail", {"kind": "zero-tail"}, ()),
    ("wrong-axis", {"kind": "wrong-axis"}, ("Softmax",)),
    ("coarse-128", {"kind": "coarse", "amount": "128"}, ()),
    ("saturate-0.7", {"kind": "saturate", "amount": "0.7"}, ()),
    ("sign", {"kind": "sign"}, ()),
    ("permute", {"kind": "permute"}, ("MatMul", "Transpose", "Conv")),
    ("nan", {"kind": "nan"}, ()),
    ("noise-per-run-0.02", {"kind": "nondeterministic", "amount": "0.02"}, ()),
    ("every-second-build", {"kind": "scale", "amount": "1.2", "build_chance": "0.5"}, ("MatMul", "Gemm", "Conv")),
    ("one-run-of-20", {"kind": "zero-tail", "run_chance": "0.05"}, ("MatMul", "Gemm", "Conv", "Softmax")),
)
"""Faults: name, options, and operators they are planted in (any when empty)."""

PER_BUILD = ("intermittent", "nondeterministic-run")
VERDICTS: Mapping[str, Sequence[str]] = {
    **NUMERIC,
    **dict.fromkeys(("row", "tile", "epsilon"), ("local-fault",)),
    "shape": ("local-fault", "engine-crash"),
    "off-by-one": ("local-fault", "layout"),
    "every-second-build": PER_BUILD,
    "one-run-of-20": PER_BUILD,
}


@dataclasses.dataclass(frozen=True)
class Case:
    """One diagnosis whose right answer is known.

    Attributes:
        name: ``healthy/MODEL/ENGINE`` or ``faulty/MODEL/ENGINE/FAULT``.
        subject: The model.
        target: Spec of the engine.
        verdicts: The right ones.
        culprits: Nodes of which one is to be named first; empty for none.
        size: The fault's, in units of the engine's rounding at the outputs; 0 for healthy ones, inf without numbers.
        kind: The freedom, or the fault.
    """

    name: str
    subject: Subject
    target: str
    verdicts: tuple[str, ...]
    culprits: tuple[str, ...]
    size: float
    kind: str

    @property
    def healthy(self) -> bool:
        """Whether nothing is wrong with the engine."""
        return self.name.startswith("healthy/")


def accelerator(options: str) -> str:
    """Return the spec of a simulated accelerator."""
    if not ENGINE.is_file() or ENGINE.read_text(encoding="utf-8") != ENGINE_TEXT:  # other cases may be reading it
        HOME.mkdir(parents=True, exist_ok=True)
        started = ENGINE.with_suffix(f".{os.getpid()}")
        started.write_text(ENGINE_TEXT, encoding="utf-8")
        started.replace(ENGINE)
    return f"script:{ENGINE},{options}"


def case_names(seed: int) -> tuple[list[str], list[str]]:
    """Return the names of healthy and of faulty cases, each in a seeded order: each engine and fault in turn."""
    rng = np.random.default_rng(seed)
    whole = [name for name in names() if not name.startswith("test_")]
    single = [name for name in names() if name.startswith("test_")]
    small = [name for name in whole if not name.startswith("light_") or name in SMALL_LIGHT]
    healthy = {engine: [f"healthy/{n}/{engine}" for n in (whole if engine in REAL else small)]
               for engine in (*REAL, *FREEDOMS)}  # fmt: skip
    operators = [[f"healthy/{name}/{engine}" for name in single for engine in REAL]]
    faulty = [[f"faulty/{n}/{e}/{word}" for n in small for e in SUFFERING] for word, _, _ in FAULTS]
    return _in_turn([*healthy.values(), *operators], rng), _in_turn(faulty, rng)


def _in_turn(groups: Sequence[Sequence[str]], rng: np.random.Generator) -> list[str]:
    shuffled = [[group[i] for i in rng.permutation(len(group))] for group in groups]
    order = rng.permutation(len(shuffled))
    rounds = itertools.zip_longest(*(shuffled[i] for i in order))
    return [name for each in rounds for name in each if name is not None]


def made(name: str) -> Case | None:
    """Return a case, measured; None when the engine does nothing of its own there, or the fault has no place."""
    word, model, engine, *fault = name.split("/")
    found = subject(model)
    if word == "healthy":
        return _healthy(name, found, engine)
    options, ops = next((options, ops) for known, options, ops in FAULTS if known == fault[0])
    return _faulty(name, found, engine, options, ops)


def _healthy(name: str, found: Subject, engine: str) -> Case | None:
    if engine not in FREEDOMS:
        verdicts = (*HEALTHY, "range-overflow") if "16" in engine and _large(found) else HEALTHY
        return Case(name, found, engine, verdicts, (), 0.0, engine)
    plain, other = outputs(found, ""), outputs(found, FREEDOMS[engine])
    if plain is None or other is None or all(np.array_equal(plain[key], other[key]) for key in plain):
        return None
    verdicts = (*HEALTHY, "range-overflow") if "fp16" in FREEDOMS[engine] and _large(found) else HEALTHY
    return Case(name, found, accelerator(FREEDOMS[engine]), verdicts, (), 0.0, engine)


def _faulty(name: str, found: Subject, engine: str, options: Mapping[str, str], ops: Sequence[str]) -> Case | None:
    word = name.rpartition("/")[2]
    graph = onnx.load(found.model).graph
    nodes = [
        node for node in graph.node if node.name and (node.op_type in ops or (not ops and node.op_type != "Constant"))
    ]
    rng = np.random.default_rng([*name.encode()])
    right, plain = outputs(found, FREEDOMS[engine]), outputs(found, "")
    if right is None or plain is None:
        return None
    always = {key: value for key, value in options.items() if key not in ("build_chance", "run_chance")}
    for index in rng.permutation(len(nodes))[:6]:
        node = nodes[index].name
        wrong = outputs(found, _joined(FREEDOMS[engine], always, node))
        size = np.inf if wrong is None else size_of(plain, right, wrong)
        if (wrong is None and options["kind"] != "shape") or size < 0.3 * HIDDEN:
            continue
        known = VERDICTS.get(word, VERDICTS[options["kind"]])
        verdicts = tuple(verdicts_on(nodes[index], known))
        if wrong is not None and not _finite(wrong):  # a square root of what changed its sign: any NaN is `non-finite`
            verdicts = (*verdicts, *({"non-finite"} - {*verdicts}))
        hidden = HEALTHY if size < HIDDEN else ()
        spec = accelerator(_joined(FREEDOMS[engine], options, node))
        return Case(name, found, spec, (*verdicts, *hidden), (node,), size, word)
    return None


def _finite(arrays: Mapping[str, np.ndarray]) -> bool:
    return all(np.isfinite(array).all() for array in arrays.values())


def _joined(freedoms: str, options: Mapping[str, str], node: str) -> str:
    return ",".join([freedoms, *(f"{key}={value}" for key, value in {**options, "node": node}.items())])


@functools.cache
def _run(model: Path, feed: Path, options: str) -> Mapping[str, np.ndarray] | None:
    given = dict(word.split("=", 1) for word in options.split(",") if word)
    try:
        session = SimulatedAccelerator().compile(model, given)
        return session.run(dict(np.load(feed)))
    except TriageError:
        return None


def outputs(found: Subject, options: str) -> Mapping[str, np.ndarray] | None:
    """Return what the simulated accelerator makes of a model; None when it fails."""
    return _run(found.model, found.feed, options)


def size_of(plain: Mapping[str, np.ndarray], right: Mapping[str, np.ndarray], wrong: Mapping[str, np.ndarray]) -> float:
    """Return the largest distance of wrong outputs from right ones over that of right ones from plain ones."""
    found = []
    for name, exact in plain.items():
        if exact.dtype != np.float32 or right[name].shape != wrong[name].shape:
            found.append(np.inf if not np.array_equal(right[name], wrong[name]) else 0.0)
            continue
        if not np.isfinite(wrong[name]).all():
            found.append(np.inf)
            continue
        norm = max(float(np.sqrt(np.mean(np.square(exact, dtype=np.float64)))), 1e-30)
        rounding, fault = (
            float(np.sqrt(np.mean(np.square(a.astype(np.float64) - b)))) / norm
            for a, b in ((right[name], exact), (wrong[name], right[name]))
        )
        found.append(fault / max(rounding, LEAST_ERROR))
    return max(found, default=0.0)


@functools.cache
def _large(found: Subject) -> bool:
    """Say whether some value or weight is beyond the largest number of fp16."""
    from healthy import Subject as Other
    from healthy import overflows

    try:
        return overflows(Other(found.name, found.model, found.feed), "fp16")
    except Exception:  # ONNX Runtime refuses to show some values; then the outputs decide
        return False

"""Golden values that are wrong, and some that are right: what `run` and `diagnose` make of either.

Wrong ones are those of another model: a weight 25 % off in an eighth of its rows, all weights 0.3 % off, a square
weight transposed, another epsilon, one weight 1 % off. Right ones come from PyTorch (as it is, and in float64), ONNX
Runtime at other levels and OpenVINO. They are given as npz, Polygraphy JSON, safetensors and through a script, with
all tensors or the outputs only; ONNX Runtime is the target, and nothing is wrong with it.
"""

import itertools
import json
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from truth_models import EXPORTED, HOME, Subject, subject
from truth_report import GoldenAnswer

from tensortriage.engines.registry import create
from tensortriage.engines.spec import EngineSpec
from tensortriage.model.model import Model
from tensortriage.model.transforms.mark_outputs import mark_outputs, markable

MODELS = ("vit", "bert", "resnet", "encoder_ln", "conv_net")
FORMS = ("npz-all", "json-outputs", "script-all", "npz-outputs", "json-all", "safetensors-outputs", "safetensors-all",
         "script-outputs")  # fmt: skip
IMPOSSIBLE = (
    ("conv_net", "transposed"),
    ("conv_net", "eighth-of-rows"),
    ("resnet", "transposed"),
    ("resnet", "epsilon"),
)
"""Models without a square weight, whose epsilons are folded into weights, or where the changed channel never fires."""
PLAIN = "onnxruntime:optimization=none"
SCRIPT = '''"""Replays saved values of the tensors that are asked for."""
import numpy as np
import onnx


class Session:
    def __init__(self, names, saved):
        self.names, self.saved = names, saved

    def run(self, feed):
        if any(not np.array_equal(feed[name], array) for name, array in np.load(FEED).items() if name in feed):
            raise ValueError("nothing is saved for these inputs")
        return {name: self.saved[name] for name in self.names if name in self.saved}


class Engine:
    def compile(self, model, options):
        names = [value.name for value in onnx.load(model, load_external_data=False).graph.output]
        return Session(names, dict(np.load(SAVED)))
'''


def names(seed: int) -> list[str]:
    """Return the cases in a seeded order; those of `run` take the forms in turn, those of `diagnose` are scripts."""
    forms = itertools.cycle(FORMS)
    found = []
    for model, origin in itertools.product(MODELS, (*WRONG, *RIGHT)):
        if origin in RIGHT and origin.startswith("torch") and model not in EXPORTED:
            continue
        if (model, origin) in IMPOSSIBLE:
            continue
        for _ in range(3 if origin in WRONG else 2):
            found.append(f"golden/run/{model}/{origin}/{_given(next(forms), origin)}")
        found.append(f"golden/diagnose/{model}/{origin}/{_given('script-all', origin)}")
        found.append(f"golden/diagnose/{model}/{origin}/script-outputs")
    distinct = list(dict.fromkeys(found))
    return [distinct[index] for index in np.random.default_rng(seed).permutation(len(distinct))]


def _given(form: str, origin: str) -> str:
    return form.replace("-all", "-outputs") if origin.startswith("torch") else form


def answer(name: str) -> GoldenAnswer:
    """Run the command of a case; whatever cannot be made or read is told as said by nobody."""
    started = time.perf_counter()
    try:
        return _answered(name)
    except Exception as error:  # one case must not end the others
        said = f"{type(error).__name__}: {error}"[:200]
        return GoldenAnswer(name, name.split("/")[3] in WRONG, None, said, "", time.perf_counter() - started)


def _answered(name: str) -> GoldenAnswer:
    started = time.perf_counter()
    _, command, model, origin, form = name.split("/")
    found = subject(model)
    saved = _saved(found, origin, whole=form.endswith("-all"))
    words = [command, _short(found.model), "--inputs", _short(found.feed), "--target", "onnxruntime"]
    kind = form.partition("-")[0]
    if kind == "script":
        script = saved.with_suffix(".py")
        script.write_text(
            SCRIPT.replace("SAVED", repr(str(saved))).replace("FEED", repr(str(found.feed))), encoding="utf-8"
        )
        words += ["--reference", f"script:{_short(script)}"]
    else:
        words += ["--load-outputs", _short(_converted(saved, kind))]
    if command == "run" and form.endswith("-all"):
        words += ["--onnx-outputs", "mark", "all"]
    with tempfile.TemporaryDirectory(prefix="truth-") as folder:
        more = ["--case", folder, "--json"] if command == "diagnose" else []
        done = _triage(*words, *more)
    failed, said = _diagnosed(done) if command == "diagnose" else _ran(done)
    return GoldenAnswer(
        name=name,
        wrong=origin in WRONG,
        failed=failed,
        said=said,
        command=shlex.join(["triage", *words]),
        seconds=time.perf_counter() - started,
    )


def _ran(done: "subprocess.CompletedProcess[str]") -> tuple[bool | None, str]:
    """Return whether `run` failed by comparing, and its last words."""
    words = " ".join(done.stdout.split())[-160:] if done.returncode in (0, 1) else " ".join(done.stderr.split())[:160]
    return {0: False, 1: True}.get(done.returncode), f"exit {done.returncode}: {words}"


def _diagnosed(done: "subprocess.CompletedProcess[str]") -> tuple[bool | None, str]:
    """Return whether `diagnose` doubts the reference, and its verdict; a fault of the target's is neither."""
    if done.returncode not in (0, 1, 4):
        return None, f"exit {done.returncode}: {' '.join(done.stderr.split())[:160]}"
    answer = json.loads(done.stdout)
    verdict = answer.get("verdict")
    if verdict is None:
        return None, f"exit {done.returncode}: {str(answer)[:160]}"
    doubted = {"match": False, "rounding": False, "comparison-unsound": True, "model-changed": True}
    return doubted.get(verdict["verdict"]), f"{verdict['verdict']}: {verdict['summary']}"[:200]


def _triage(*words: str) -> "subprocess.CompletedProcess[str]":
    triage = [str(Path(sys.executable).parent / "triage"), *words]
    return subprocess.run(triage, capture_output=True, text=True, cwd=HOME.parents[2], check=False)


def _short(path: Path) -> str:
    return str(path.relative_to(HOME.parents[2]))


def _converted(saved: Path, kind: str) -> Path:
    """Return the values in another format, as the tool's own converter writes it (Polygraphy reads its JSON)."""
    if kind == "npz":
        return saved
    path = saved.with_suffix(f".{kind}")
    if not path.is_file():
        done = _triage("data", "convert", str(saved), "-o", str(path), "--as", "outputs")
        if done.returncode:
            raise RuntimeError(done.stderr)
    return path


def _saved(found: Subject, origin: str, *, whole: bool) -> Path:
    """Return the file of golden values, computed if it is not there yet."""
    path = HOME / "golden" / f"{found.name}-{origin}-{'all' if whole else 'outputs'}.npz"
    if not path.is_file():
        path.parent.mkdir(exist_ok=True)
        if origin in WRONG:
            proto = onnx.load(found.model)
            WRONG[origin](proto)
            values = _values(proto, found, PLAIN, whole=whole)
        elif origin.startswith("torch"):
            values = _from_torch(found, double=origin == "torch-float64")
        else:
            values = _values(onnx.load(found.model), found, RIGHT[origin], whole=whole)
        np.savez(path, **values)  # type: ignore[arg-type] # arrays by name
    return path


def _values(proto: onnx.ModelProto, found: Subject, spec: str, *, whole: bool) -> Mapping[str, np.ndarray]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        onnx.save(proto, path)
        if whole:
            model = Model.load(path)
            path = mark_outputs(model, markable(model)).save(Path(folder) / "marked.onnx")
        engine = EngineSpec.parse(spec)
        session = create(engine).compile(path, engine.options)
        try:
            return dict(session.run(found.arrays()))
        finally:
            session.close()


def _from_torch(found: Subject, *, double: bool) -> Mapping[str, np.ndarray]:
    import torch
    from networks.corpus import drawn

    module, feed = drawn(found.name)
    with torch.no_grad():
        given = [value.double() if double and value.is_floating_point() else value for value in feed.values()]
        made = (module.double() if double else module)(*given)
    every = made if isinstance(made, tuple) else (made,)
    names = [value.name for value in onnx.load(found.model).graph.output]
    return {name: value.numpy() for name, value in zip(names, every, strict=True)}


def _weights(proto: onnx.ModelProto) -> list[onnx.TensorProto]:
    """Return the float weights of at least two axes, in the order of the nodes that use them."""
    tensors = {t.name: t for t in proto.graph.initializer if t.data_type == onnx.TensorProto.FLOAT and len(t.dims) > 1}
    used = [name for node in proto.graph.node for name in node.input if node.op_type in ("MatMul", "Gemm", "Conv")]
    return [tensors[name] for name in dict.fromkeys(used) if name in tensors]


def _change(tensor: onnx.TensorProto, change: Callable[[np.ndarray], np.ndarray]) -> None:
    array = np.ascontiguousarray(change(numpy_helper.to_array(tensor).copy()), np.float32)
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def _eighth(proto: onnx.ModelProto) -> None:
    def change(array: np.ndarray) -> np.ndarray:
        array[: max(1, len(array) // 8)] *= 1.25
        return array

    weights = _weights(proto)
    _change(weights[len(weights) // 2], change)


def _all(proto: onnx.ModelProto) -> None:
    rng = np.random.default_rng(3)
    for tensor in _weights(proto):
        _change(tensor, lambda array: array * (1.0 + 0.003 * rng.standard_normal(array.shape)))


def _transposed(proto: onnx.ModelProto) -> None:
    square = [tensor for tensor in _weights(proto) if len(tensor.dims) == 2 and tensor.dims[0] == tensor.dims[1]]
    _change(square[len(square) // 2], np.transpose)


def _epsilon(proto: onnx.ModelProto) -> None:
    for node in proto.graph.node:
        if node.op_type in ("LayerNormalization", "BatchNormalization"):
            kept = [attribute for attribute in node.attribute if attribute.name != "epsilon"]
            del node.attribute[:]
            node.attribute.extend([*kept, onnx.helper.make_attribute("epsilon", 1e-3)])


def _one(proto: onnx.ModelProto) -> None:
    weights = _weights(proto)
    _change(weights[len(weights) // 3], lambda array: array * 1.01)


WRONG: Mapping[str, Callable[[onnx.ModelProto], None]] = {
    "eighth-of-rows": _eighth,
    "all-weights": _all,
    "transposed": _transposed,
    "epsilon": _epsilon,
    "one-weight": _one,
}
"""What makes a model another one, by name."""

RIGHT: Mapping[str, str] = {
    "torch": "",
    "torch-float64": "",
    "onnxruntime-all": "onnxruntime",
    "onnxruntime-basic": "onnxruntime:optimization=basic",
    "openvino": "openvino:precision=fp32",
}
"""Origins of right values, and their engines."""

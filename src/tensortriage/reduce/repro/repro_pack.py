"""The repro pack: a folder that a vendor can take as it is, with model, inputs, expected outputs and a script.

Model and data are laid out as in ONNX's own tests (``model.onnx``, ``test_data_set_0``), which engines' tools read.
"""

import math
import re
import shlex
import shutil
from pathlib import Path
from string import Template

from tensortriage.errors import StoreError
from tensortriage.model.io.tensor_pb import write_tensor
from tensortriage.model.model import Model
from tensortriage.reduce.failure import BAND, Failure
from tensortriage.reduce.repro.repro_case import MODEL_NAME, Repro
from tensortriage.values.files import partial_name, sweep_partial
from tensortriage.values.printable import printable

MARK = "repro.py"
"""The script of a pack."""
_OWN = frozenset({MODEL_NAME, f"{MODEL_NAME}.data", MARK, "README.md"})
_DATA_SET, _TENSOR = re.compile(r"test_data_set_\d+"), re.compile(r"(input|output)_\d+\.pb")
"""What a pack consists of; only that is replaced by another one."""


def write_pack(
    folder: Path, repro: Repro, *, target: str, versions: dict[str, str], local: Failure, exported_wrong: str = ""
) -> None:
    """Write a repro pack, which appears when it is complete; an earlier one is replaced.

    Args:
        folder: Where; missing, empty or an earlier pack.
        repro: The case.
        target: Spec of the engine that fails.
        versions: Versions of what is installed here.
        local: How the case fails.
        exported_wrong: What an exporter made wrong, when it and not the engine is to blame: the expected outputs are
            PyTorch's then.

    Raises:
        StoreError: When the folder holds anything else (``repro-folder-foreign``) or cannot be written
            (``repro-unwritable``).
    """
    foreign = _foreign(folder)
    if foreign is not None:
        raise StoreError(
            f"{foreign} is in the way of the repro", slug="repro-folder-foreign", cure="move it, or give another -o"
        )
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        sweep_partial(folder)
        fresh, earlier = partial_name(folder), partial_name(folder)
        try:
            fresh.mkdir()
            _fill(fresh, repro, target=target, limit=_limit(local))
            text = readme(repro.model, target=target, versions=versions, local=local, exported_wrong=exported_wrong)
            (fresh / "README.md").write_text(text)
            if folder.exists():
                folder.rename(earlier)
            fresh.rename(folder)
        finally:
            for left in (fresh, earlier):
                shutil.rmtree(left, ignore_errors=True)
    except OSError as error:
        raise StoreError(
            f"the repro cannot be written to {folder}: {error.strerror or error}",
            slug="repro-unwritable",
            cure="free disk space, or give another -o",
        ) from error


def _fill(folder: Path, repro: Repro, *, target: str, limit: float) -> None:
    repro.model.save(folder / MODEL_NAME)
    for number, sample in enumerate(repro.samples):
        inner = folder / f"test_data_set_{number}"
        inner.mkdir()
        for position, spec in enumerate(repro.model.inputs):
            write_tensor(inner / f"input_{position}.pb", spec.name, sample.inputs[spec.name])
        for position, spec in enumerate(repro.model.outputs):
            write_tensor(inner / f"output_{position}.pb", spec.name, sample.outputs[spec.name])
    (folder / MARK).write_text(script(target, limit=limit))


def _foreign(folder: Path) -> Path | None:
    """Return what nobody but the user can have put where the pack goes, a link included; None when there is nothing."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        return folder
    for entry in sorted(folder.iterdir()) if folder.exists() else ():
        if entry.is_symlink():
            return entry
        if entry.is_dir() and _DATA_SET.fullmatch(entry.name):
            strange = [one for one in sorted(entry.iterdir()) if not _TENSOR.fullmatch(one.name) or one.is_symlink()]
            if strange:
                return strange[0]
        elif entry.is_dir() or entry.name not in _OWN:
            return entry
    return None


def _limit(local: Failure) -> float:
    """Return the relative error that still counts as the failure."""
    return BAND * local.error if local.kind.numeric and math.isfinite(local.error) else 1e-4


def script(target: str, *, limit: float) -> str:
    """Return the text of ``repro.py``.

    Args:
        target: Spec of the engine; plain ONNX Runtime and OpenVINO are called directly, others through triage.
        limit: Relative error from which the script exits with 1.
    """
    name, _, words = target.partition(":")
    options = dict(word.split("=", 1) for word in words.split(",") if "=" in word)
    plain = {
        "onnxruntime": _onnxruntime(options),
        "openvino": _openvino(options),
    }.get(name)
    return Template(_SCRIPT).substitute(run=plain or _TRIAGE.replace("TARGET", repr(target)), limit=f"{limit:.3g}")


def _onnxruntime(options: dict[str, str]) -> str | None:
    if set(options) - {"optimization"}:
        return None
    levels = {"none": "DISABLE_ALL", "basic": "ENABLE_BASIC", "extended": "ENABLE_EXTENDED", "layout": "ENABLE_LAYOUT"}
    level = levels.get(options.get("optimization", "all"), "ENABLE_ALL")
    return _ONNXRUNTIME.replace("LEVEL", level)


def _openvino(options: dict[str, str]) -> str | None:
    hints = {"fp32": "f32", "f32": "f32", "bf16": "bf16", "fp16": "f16", "f16": "f16"}
    if set(options) - {"precision"}:
        return None
    hint = hints.get(options.get("precision", ""))
    return _OPENVINO.replace("CONFIG", repr({"INFERENCE_PRECISION_HINT": hint}) if hint else "{}")


def readme(model: Model, *, target: str, versions: dict[str, str], local: Failure, exported_wrong: str = "") -> str:
    """Return the text of ``README.md``; see `write_pack`."""
    # Names of a model go into indented blocks, where Markdown means nothing by them.
    nodes = "\n".join("    " + printable(f"{node.op_type} {node.name}") for node in model.graph.nodes)
    found = "\n".join(f"- {name} {version}" for name, version in versions.items())
    command = f"triage run model.onnx --target {shlex.quote(target)} --inputs test_data_set_0"
    title, expected = f"Wrong results on {target.partition(':')[0]}", "the reference"
    told = local.describe()
    if exported_wrong:
        title, expected = "An exported model that is not its PyTorch network", "PyTorch"
        told = f"{exported_wrong}; {told}"
    return (
        f"# {title}\n\n    {printable(told)}.\n\n"
        f"`test_data_set_*` holds inputs and the expected outputs (computed by {expected}).\n\n"
        f"    python repro.py\n\nor\n\n"
        f"    {printable(command)}\n\n"
        f"## Nodes\n\n{nodes}\n\n## Versions\n\n{found}\n"
    )


_SCRIPT = '''"""Run the model on every test data set and compare with what is expected; exit code 1 when they differ."""

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

HERE = Path(__file__).resolve().parent
MODEL = HERE / "model.onnx"

$run

def tensors(folder, kind):
    files = sorted(folder.glob(kind + "_*.pb"), key=lambda file: int(file.stem.split("_")[1]))
    found = [onnx.TensorProto.FromString(file.read_bytes()) for file in files]
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in found}


worst = 0.0
for folder in sorted(HERE.glob("test_data_set_*")):
    expected = tensors(folder, "output")
    for name, actual in run(tensors(folder, "input"), list(expected)).items():
        right, actual = (np.asarray(array).astype(np.float64) for array in (expected[name], actual))
        finite = bool((np.isfinite(right) == np.isfinite(actual)).all())
        with np.errstate(all="ignore"):
            error = np.sqrt(np.nanmean((actual - right) ** 2)) / max(np.sqrt(np.nanmean(right**2)), 1e-30)
        error = float(error) if finite and right.shape == actual.shape else float("inf")
        print(folder.name, repr(name), "relative error", error)
        print("  expected", right.ravel()[:5], "got", actual.ravel()[:5])
        worst = max(worst, error)
sys.exit(worst > $limit)
'''

_ONNXRUNTIME = """import onnxruntime

options = onnxruntime.SessionOptions()
options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_LEVEL
session = onnxruntime.InferenceSession(str(MODEL), options, providers=["CPUExecutionProvider"])


def run(inputs, names):
    return dict(zip(names, session.run(names, inputs)))

"""

_OPENVINO = """import openvino

core = openvino.Core()
compiled = core.compile_model(core.read_model(str(MODEL)), "CPU", CONFIG)


def run(inputs, names):
    results = compiled(inputs)
    return {name: results[name] for name in names}

"""

_TRIAGE = """from tensortriage.engines.registry import create
from tensortriage.engines.spec import EngineSpec

spec = EngineSpec.parse(TARGET)
session = create(spec).compile(MODEL, spec.options)


def run(inputs, names):
    return session.run(inputs)

"""

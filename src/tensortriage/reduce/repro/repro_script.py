"""``repro.py``: the script of a repro, which needs no TensorTriage where the engine is a plain one.

It asks the engine for the nodes as they are in the file, and, where a PyTorch module lies beside them, exports that
anew with the PyTorch that is installed. Which of the two decides the exit code depends on whose fault it is: a mended
exporter makes the second one right, and never the first.
"""

from string import Template

from tensortriage.reduce.repro.packed_module import PackedModule


def script(target: str, *, limit: float, module: PackedModule | None = None, exported_wrong: bool = False) -> str:
    """Return the text of ``repro.py``.

    Args:
        target: Spec of the engine; plain ONNX Runtime and OpenVINO are called directly, others through triage.
        limit: Relative error from which the script exits with 1.
        module: The module beside it; None for none.
        exported_wrong: Whether the exporter is to blame, not the engine.
    """
    name, _, words = target.partition(":")
    options = dict(word.split("=", 1) for word in words.split(",") if "=" in word)
    plain = {
        "onnxruntime": _onnxruntime(options),
        "openvino": _openvino(options),
    }.get(name)
    opened = plain or _TRIAGE.replace("TARGET", repr(target))
    if module is None:
        end = Template(_END_FILE).substitute(limit=f"{limit:.3g}")
        return Template(_SCRIPT).substitute(what=_WHAT, more_imports="", opened=opened, anew="", end=end)
    judged = ("anew",) if exported_wrong and module.anew else ("file", "anew") if module.anew else ("file",)
    anew = Template(_ANEW).substitute(dynamo=module.exporter == "dynamo")
    end = Template(_END_BOTH).substitute(judged=repr(judged), limit=f"{limit:.3g}")
    return Template(_SCRIPT).substitute(
        what=_WHAT_BOTH, more_imports="import tempfile\n", opened=opened, anew=anew, end=end
    )


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


_WHAT = "Run the model on every test data set and compare with what is expected; exit code 1 when they differ."
_WHAT_BOTH = """Run nodes of a file, and the PyTorch module they were made from, exported anew; exit code 1 when wrong.

Without PyTorch only the nodes of the file are run, whose expected results were computed by PyTorch.
"""

_SCRIPT = '''"""$what"""

import sys
${more_imports}from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

HERE = Path(__file__).resolve().parent

$opened

def tensors(folder, kind):
    files = sorted(folder.glob(kind + "_*.pb"), key=lambda file: int(file.stem.split("_")[1]))
    found = [onnx.TensorProto.FromString(file.read_bytes()) for file in files]
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in found}


def error_of(place, name, right, actual):
    right, actual = (np.asarray(array).astype(np.float64) for array in (right, actual))
    if right.shape != actual.shape:
        print(place, repr(name), "has shape", actual.shape, "instead of", right.shape)
        return float("inf")
    finite = bool((np.isfinite(right) == np.isfinite(actual)).all())
    with np.errstate(all="ignore"):
        error = np.sqrt(np.nanmean((actual - right) ** 2)) / max(np.sqrt(np.nanmean(right**2)), 1e-30)
    error = float(error) if finite else float("inf")
    print(place, repr(name), "relative error", error)
    print("  expected", right.ravel()[:5], "got", actual.ravel()[:5])
    return error


def as_exported():
    """Return the worst error of the nodes of the file."""
    run, worst = opened(HERE / "model.onnx"), 0.0
    for folder in sorted(HERE.glob("test_data_set_*")):
        expected = tensors(folder, "output")
        for name, actual in run(tensors(folder, "input"), list(expected)).items():
            worst = max(worst, error_of(folder.name, name, expected[name], actual))
    return worst

$anew
$end'''

_END_FILE = """
sys.exit(as_exported() > $limit)
"""

_ANEW = '''
def exported_anew():
    """Return the worst error of the module as the PyTorch here exports it; None without PyTorch."""
    try:
        import torch
    except ImportError:
        return None
    sys.dont_write_bytecode = True
    from module import make

    module, inputs = make()
    with torch.no_grad():
        expected = module(*inputs)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "module.onnx"
        torch.onnx.export(module, inputs, str(path), dynamo=$dynamo, verbose=False)
        graph = onnx.load(path).graph
        given, names = ([value.name for value in values] for values in (graph.input, graph.output))
        found = opened(path)({name: tensor.numpy() for name, tensor in zip(given, inputs)}, names)
    place = "exported by PyTorch " + torch.__version__
    return max(error_of(place, name, right, found[name]) for name, right in zip(names, expected))

'''

_END_BOTH = """
JUDGED = $judged  # "anew": the fault is the exporter's; "file": it is in the file; both: it is the engine's
errors = {"file": as_exported(), "anew": exported_anew()}
if errors["anew"] is None:
    print("PyTorch is not installed here: the nodes of the file are judged")
sys.exit(any(errors[which] > $limit for which in (JUDGED if errors["anew"] is not None else ("file",))))
"""

_ONNXRUNTIME = """import onnxruntime


def opened(path):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_LEVEL
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda inputs, names: dict(zip(names, session.run(names, inputs)))

"""

_OPENVINO = """import openvino


def opened(path):
    core = openvino.Core()
    compiled = core.compile_model(core.read_model(str(path)), "CPU", CONFIG)

    def run(inputs, names):
        results = compiled(inputs)
        return {name: results[name] for name in names}

    return run

"""

_TRIAGE = """from tensortriage.engines.registry import create
from tensortriage.engines.spec import EngineSpec


def opened(path):
    spec = EngineSpec.parse(TARGET)
    session = create(spec).compile(path, spec.options)
    return lambda inputs, names: session.run(inputs)

"""

"""``repro.py``: the script of a repro, which needs numpy and the engine alone.

It runs the nodes of the file on the engine, and, where a PyTorch module lies next to them, exports that again with the
installed PyTorch. Which of the two decides the exit code depends on the culprit: a mended exporter makes the second one
right, and never the first. A result that cannot be computed here is neither right nor wrong.
"""

import math
from string import Template

from tensortriage.reduce.failure import Failure, FailureKind
from tensortriage.reduce.repro.module_beside import ModuleBeside
from tensortriage.reduce.repro.repro_case import VANISHED

RIGHT, REPRODUCED, CANNOT_RUN = 0, 1, 2
"""Exit codes of the script."""
_ENDS_THE_PROCESS = (FailureKind.CRASH, FailureKind.HANG, FailureKind.OUT_OF_MEMORY)


def script(
    opened: str,
    *,
    limit: float,
    failure: Failure,
    seconds: float = 600.0,
    module: ModuleBeside | None = None,
    exported_wrong: bool = False,
) -> str:
    """Return the text of ``repro.py``.

    Args:
        opened: Python that defines how a model is built on the engine.
        limit: Relative error from which the failure counts as reproduced.
        failure: How it fails.
        seconds: Time after which a run hangs.
        module: The module next to it; None for none.
        exported_wrong: Whether the exporter is to blame, not the engine.
    """
    anew_too = module is not None and module.anew
    judged = ("anew",) if anew_too and exported_wrong else ("file", "anew") if anew_too else ("file",)
    ends = failure.kind in _ENDS_THE_PROCESS
    return Template(_SCRIPT).substitute(
        what=_WHAT if module is None else _WHAT_BOTH,
        opened=opened.rstrip(),
        failure=repr(failure.kind.value if not failure.kind.numeric else "wrong"),
        limit=f"{limit:.3g}",
        least=f"{max(VANISHED * failure.signal, 1e-30):.3g}",
        anew="" if module is None else module.check,
        judge=_JUDGE_FILE if module is None else _JUDGE_BOTH.replace("JUDGED", repr(judged)),
        apart=_APART.replace("SECONDS", str(math.ceil(seconds))) if ends else "",
        ended="ended()" if ends else "main()",
    )


_WHAT = "Run the model on every test data set and compare with the expected outputs."
_WHAT_BOTH = """Run nodes of a file, and the PyTorch module they were made from, exported again, and compare.

Without PyTorch only the nodes of the file are run, whose expected results were computed by PyTorch."""

_SCRIPT = '''"""$what

Exit code 0: it does not fail here; 1: it fails again; 2: it cannot be run here, and the last lines say what is missing.
"""

import argparse
import importlib
import platform
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import numpy as np
except ImportError as error:
    print("cannot be run: numpy is missing:", error)
    sys.exit(2)

HERE = Path(__file__).resolve().parent
FAILS = $failure
LIMIT = $limit  # relative error from which it counts
LABELS = {}  # names of bfloat16 tensors, which numpy has as uint16
sys.dont_write_bytecode = True


$opened


TYPES = {
    1: "f4", 2: "u1", 3: "i1", 4: "u2", 5: "i2", 6: "i4", 7: "i8", 9: "?", 10: "f2", 11: "f8", 12: "u4", 13: "u8",
    14: "c8", 15: "c16", 16: "u2",
}


def tensor(data):
    """Return name and array of a serialized onnx.TensorProto with raw data."""
    place, dims, kind, name, raw, words = 0, [], 0, "", b"", []

    def number(place):
        value = shift = 0
        while True:
            value |= (data[place] & 127) << shift
            place, shift = place + 1, shift + 7
            if data[place - 1] < 128:
                return value, place

    while place < len(data):
        key, place = number(place)
        value, place = number(place)
        content = data[place : place + value]
        place += value if key & 7 == 2 else 0
        if key >> 3 == 1:
            dims.append(value)
        elif key >> 3 == 2:
            kind = value
        elif key >> 3 == 6:
            words.append(content.decode())
        elif key >> 3 == 8:
            name = content.decode()
        elif key >> 3 == 9:
            raw = content
    if kind == 8:
        return name, np.array(words, dtype=object).reshape(dims)
    if kind not in TYPES:
        raise ValueError("numpy has no counterpart of element type %d of %r" % (kind, name))
    if kind == 16:
        LABELS[name] = "bfloat16"
    return name, np.frombuffer(raw, np.dtype(TYPES[kind]).newbyteorder("<")).astype(TYPES[kind]).reshape(dims)


def tensors(folder, kind):
    files = sorted(folder.glob(kind + "_*.pb"), key=lambda file: int(file.stem.split("_")[1]))
    return dict(tensor(file.read_bytes()) for file in files)


def wide(name, array):
    array = np.asarray(array)
    if name in LABELS and array.dtype.itemsize == 2:
        return (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return array if array.dtype.kind == "O" else array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def error_of(place, name, right, actual):
    right, actual = wide(name, right), wide(name, actual)
    if right.shape != actual.shape:
        print(place, repr(name), "has shape", actual.shape, "instead of", right.shape)
        return float("inf")
    off = np.asarray(right != actual, np.float64)
    if right.dtype.kind == "O":
        error = float(off.mean()) if right.size else 0.0
    else:
        same = (np.isnan(right) == np.isnan(actual)) & (np.isinf(right) == np.isinf(actual))
        whole = np.isfinite(right) & np.isfinite(actual)
        off = np.where(same, 0.0, np.inf)
        size = np.abs(right[whole])
        found = off[whole] = np.abs(actual[whole] - right[whole])
        error = float(np.sqrt((found**2).sum() / max((size**2).sum(), size.size * $least**2))) if size.size else 0.0
        error = error if same.all() else float("inf")
    wrong = np.count_nonzero(off)
    print(place, repr(name), f"relative error {error:.3g} in {wrong} of {off.size} elements")
    for flat in np.argsort(-off, axis=None, kind="stable")[: min(wrong, 5)]:
        at = tuple(map(int, np.unravel_index(flat, off.shape)))
        print("  at", list(at), "expected", right[at], "got", actual[at])
    return error


def cannot(error):
    print("cannot be run here:", type(error).__name__ + ":", error)
    if isinstance(error, ImportError):
        print("missing:", getattr(error, "name", None) or error)
        print("install it for", sys.executable)
    sys.exit(2)


def end(fails, why=""):
    print(("it fails again" if fails else "it does not fail here") + why)
    sys.exit(int(fails))


def attempt(stage, function, *given):
    """Call what may fail as reported; any other failure of it is none of the report."""
    try:
        return function(*given)
    except ImportError as error:
        cannot(error)
    except Exception as error:
        if stage != FAILS:
            cannot(error)
        print(stage + ":", error)
        told()
        end(True)


def as_in_the_file():
    """Return the worst error of the nodes of the file."""
    run, worst = attempt("build-failed", opened, HERE / "model.onnx"), 0.0
    told()
    for folder in sorted(HERE.glob("test_data_set_*"), key=lambda folder: int(folder.name.rsplit("_", 1)[1])):
        inputs, expected = tensors(folder, "input"), tensors(folder, "output")
        for name, actual in attempt("run-failed", run, inputs, list(expected)).items():
            if name in expected:
                worst = max(worst, error_of(folder.name, name, expected[name], actual))
    return worst

$anew
def told():
    """Print what this was run with."""
    from importlib import metadata

    print("python", platform.python_version(), "on", platform.platform())
    for root in sorted({name.partition(".")[0] for name in sys.modules}):
        try:
            print(root, metadata.version(root))
        except Exception:
            pass
    try:
        facts = dict(line.split(":", 1) for line in Path("/proc/cpuinfo").read_text().splitlines() if ":" in line)
        facts = {key.strip(): value.strip() for key, value in facts.items()}
        print("CPU", facts.get("model name") or facts.get("Hardware") or platform.processor())
        known = ("avx", "amx", "sse4", "fma", "f16c", "vnni", "asimd", "sve", "bf16", "i8mm", "fphp")
        flags = (facts.get("flags") or facts.get("Features") or "").split()
        print("CPU flags", *sorted(flag for flag in flags if flag.startswith(known)))
    except OSError:
        print("CPU", platform.processor() or platform.machine())
    try:
        query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
        found = subprocess.run(query, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=20)
        for line in found.stdout.decode().splitlines():
            print("GPU and driver", line)
    except (OSError, subprocess.SubprocessError):
        pass


def another(word):
    """Return how another engine builds a model: a file's own opened(path), ONNX Runtime or OpenVINO as they come."""
    name, _, device = word.partition(":")
    if word.endswith(".py"):
        return runpy.run_path(word)["opened"]
    if name not in ("onnxruntime", "openvino"):
        cannot(ValueError("--engine takes onnxruntime[:PROVIDER], openvino[:DEVICE] or FILE.py, not " + word))
    engine = importlib.import_module(name)

    def by_onnxruntime(path):
        session = engine.InferenceSession(str(path), providers=[device or "CPUExecutionProvider"])
        return lambda inputs, names: dict(zip(names, session.run(names, inputs)))

    def by_openvino(path):
        compiled = engine.Core().compile_model(str(path), device or "CPU")
        return lambda inputs, names: dict(zip(names, map(compiled(inputs).__getitem__, names)))

    return by_onnxruntime if name == "onnxruntime" else by_openvino


def main():
    try:
        if given.engine:
            globals()["opened"] = another(given.engine)
$judge
    except Exception as error:
        cannot(error)
    end(worst > LIMIT, f": relative error {worst:.3g}, which counts from {LIMIT:g} on")


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument(
    "--engine", help="instead: onnxruntime[:PROVIDER], openvino[:DEVICE], or FILE.py with opened(path), as in here"
)
parser.add_argument("--here", action="store_true", help="run it in this process")
given, _ = parser.parse_known_args()
$apart
$ended
'''

_JUDGE_FILE = """        worst = as_in_the_file()"""

_JUDGE_BOTH = """        judged = JUDGED  # anew: the exporter is at fault; file: the file is; both: the engine is
        errors = {"file": as_in_the_file(), "anew": exported_anew()}
        if errors["anew"] is None:
            print("PyTorch is not installed here: the nodes of the file are judged")
            judged = ("file",)
        worst = max(errors[which] for which in judged)"""

_APART = '''
def ended():
    """Run this in a process of its own: the failure takes that one with it."""
    if given.here:
        main()
    try:
        code = subprocess.run([sys.executable, "-u", __file__, "--here", *sys.argv[1:]], timeout=SECONDS).returncode
    except subprocess.TimeoutExpired:
        print("it was still running after SECONDS s")
        code = None
    if code in (0, 1, 2):
        sys.exit(code)
    if code is not None:
        print("the process ended with", code)
    if (code is None) == (FAILS == "engine-hang"):
        end(True)
    sys.exit(2)

'''

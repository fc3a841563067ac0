"""Engines as users have them: a file that the engine's own converter wrote, healthy and with a fault in its weights.

    python bench/networks NETS heldout            # once, where PyTorch is
    python bench/engines.py NETS [--engines mnn litert==2.1.2] [--networks bert] [--kept DIR]

For every environment that `triage engines install` made, and the engines of this Python, each of the seven networks
`heldout` is diagnosed. Engines with ``file=`` get what their converter makes with its defaults, as a user
would call it, and that file once more with each of two weights changed: one scaled by 1.1, one rolled by one entry.
With ``--quantized`` it is their file of 8-bit weights, and a weight is changed before it is quantized: scaled by 1.02,
1.05 or 1.1, or rolled.
A right verdict on a healthy file is `match` or `rounding`, on a changed one a fault that names its node or
one computed with it; a refusal must quote the engine. Prints a row per case and the shares of an engine.
"""

import argparse
import dataclasses
import functools
import itertools
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import onnx
from networks import names, short
from onnx import numpy_helper

from tensortriage_engines.install.environments import Environment, environments

NAMES = short(names("heldout"))
HEALTHY = ("match", "rounding")
FAULTS = ("local-fault", "fusion-fault", "model-changed", "quantization")
REFUSED = ("build-failed", "engine-crash")
HERE = ("onnxruntime", "openvino:precision=fp32")
FEWEST = 24
"""Entries of a weight that is looked for in a file: fewer might be found where they are not."""
TRUE_FAULTS = {("ncnn", "keypoints"): "ReduceSum", ("rknn", "unet"): "Resize"}
"""Operators that an engine itself computes wrongly, so that no fault of a network behind or before them is planted."""
BESIDE = frozenset({"Add", "Mul", "BatchNormalization", "Relu", "Clip", "Sigmoid", "Tanh", "Softmax"})
"""What converters compute with a product or a convolution in one."""


@dataclasses.dataclass(frozen=True)
class Row:
    """What came of one diagnosis."""

    engine: str
    network: str
    case: str
    expected: str
    verdict: str
    culprits: tuple[str, ...]
    right: bool
    seconds: float
    words: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nets", type=Path)
    parser.add_argument("--engines", nargs="+", default=[], help="NAME or NAME==VERSION; all that are here by default")
    parser.add_argument("--networks", nargs="+", default=NAMES)
    parser.add_argument("--kept", type=Path, help="where files and cases are kept")
    parser.add_argument("--options", default="", help="further options of the targets, e.g. precision=int8")
    parser.add_argument("--healthy", action="store_true", help="leave the changed files out")
    parser.add_argument("--files", type=Path, help="files that another tool made, NETWORK.tflite, in the place of such")
    parser.add_argument("--quantized", action="store_true", help="files of 8-bit weights, of MNN and LiteRT")
    parser.add_argument("--quantizer", help="a Python with ai-edge-quantizer, which quantizes LiteRT's instead")
    parser.add_argument("--recipe", default="dynamic_wi8_afp32", help="recipe of ai-edge-quantizer")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.kept or Path(scratch)
        rows = []
        for name, spec, python in targets(arguments.engines):
            for network in arguments.networks:
                for row in cases(name, spec, python, arguments, network, folder / name / network):
                    rows.append(row)
                    show(row)
            summarise(name, [row for row in rows if row.engine == name])


def targets(wanted: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield a name, what to write as a target, and the Python of every engine that is asked for."""
    found = [(spec.partition(":")[0], spec, sys.executable) for spec in HERE]
    found += [(f"{made.engine}=={made.version}", spec_of(made), made.python) for made in environments()]
    for name, spec, python in found:
        if not wanted or name in wanted or name.partition("==")[0] in wanted:
            yield name, spec, python


def spec_of(made: Environment) -> str:
    word = "onnxruntime:ep=qnn" if made.engine == "qnn" else made.engine
    return f"{word}{',' if ':' in word else ':'}worker={made.python}"


def cases(
    name: str, spec: str, python: str, arguments: argparse.Namespace, network: str, folder: Path
) -> Iterator[Row]:
    """Diagnose one network on one engine: as it is, and with faults in its file."""
    model = arguments.nets / f"{network}.onnx"
    folder.mkdir(parents=True, exist_ok=True)
    target = spec + (f"{',' if ':' in spec else ':'}{arguments.options}" if arguments.options else "")
    make = (QUANTIZERS if arguments.quantized else CONVERTERS).get(name.partition("==")[0])
    if arguments.quantizer and name.startswith("litert"):
        make = functools.partial(quantized_by, arguments.quantizer, arguments.recipe)
    if arguments.files:
        make = functools.partial(found, arguments.files)
    if make is None:
        yield asked(name, network, "healthy", "", model, target, folder)
        return
    try:
        file = make(python, model, folder)
    except subprocess.CalledProcessError as error:
        words = (error.stderr or error.stdout or b"").decode(errors="replace").strip().splitlines()[-1:]
        yield Row(name, network, "conversion", "", "no file", (), right=True, seconds=0.0, words=" ".join(words))
        yield asked(name, network, "healthy", "", model, target, folder)
        return
    healthy = asked(name, network, "healthy", "", model, f"{target},file={file}", folder)
    known = TRUE_FAULTS.get((name.partition("==")[0], network))
    kinds = {node.name: node.op_type for node in onnx.load(model).graph.node}
    if known is not None and healthy.verdict in FAULTS:
        right = [kinds[each] for each in healthy.culprits[:1]] == [known]
        healthy = dataclasses.replace(healthy, case="own fault", expected=known, right=right)
    yield healthy
    if healthy.verdict in REFUSED or arguments.healthy or healthy.expected:
        return
    if arguments.quantized:
        for case, node, other in other_models(model, folder):
            changed = make(python, other, other.parent)
            yield asked(name, network, case, node, model, f"{target},file={changed}", folder)
        return
    for number, (node, changed) in enumerate(faults(model, file, folder)):
        yield asked(name, network, f"fault {number + 1}", node, model, f"{target},file={changed}", folder)


def found(files: Path, python: str, model: Path, folder: Path) -> Path:
    """Return the file of a network in a folder, whatever its ending."""
    del python, folder
    return next(files.glob(f"{model.stem}.*"))


def asked(name: str, network: str, case: str, expected: str, model: Path, target: str, folder: Path) -> Row:
    """Run `triage diagnose`, and judge what it says."""
    out = folder / f"case-{case.replace(' ', '-')}"
    shutil.rmtree(out, ignore_errors=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "tensortriage", "diagnose", str(model), "--inputs", str(model.with_suffix(".npz"))]
    done = subprocess.run([*command, "--target", target, "-o", str(out)], capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if not (out / "verdict.json").is_file() or "error[" in done.stderr:
        return Row(name, network, case, expected, "error", (), right=False, seconds=seconds, words=done.stderr.strip())
    told = json.loads((out / "verdict.json").read_text())
    verdict, culprits = told["verdict"], tuple(each["node"] for each in told["culprits"])
    right = verdict in (*HEALTHY, *REFUSED) if not expected else verdict in FAULTS and named(model, expected, culprits)
    return Row(name, network, case, expected, verdict, culprits, right, seconds, told["summary"])


def named(model: Path, expected: str, culprits: Sequence[str]) -> bool:
    """Whether the first culprit is the node of a weight, or one that is computed with it."""
    if not culprits:
        return False
    nodes = {node.name: node for node in onnx.load(model).graph.node}
    near, last = {expected}, nodes[expected]
    for _ in range(3):
        users = [node for node in nodes.values() if set(node.input) & set(last.output)]
        if len(users) != 1 or users[0].op_type not in BESIDE:
            break
        last = users[0]
        near.add(last.name)
    return culprits[0] in near


def weights(graph: onnx.GraphProto) -> list[tuple[str, str, np.ndarray]]:
    """Return the weights that nodes read: node, name and numbers."""
    held = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    return [
        (node.name, name, held[name])
        for node in graph.node
        for name in node.input
        if name in held and held[name].dtype == np.float32 and held[name].ndim > 1 and held[name].size >= FEWEST
    ]


def other_models(model: Path, folder: Path) -> Iterator[tuple[str, str, Path]]:
    """Yield a case, a node, and a model in which its weight is another; each case takes another weight in turn."""
    found = [each for each in weights(onnx.load(model).graph) if "Gather" not in each[0]]
    changes: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        f"x {factor}": lambda w, factor=factor: w * np.float32(factor) for factor in (1.02, 1.05, 1.1)
    }
    for number, (case, change) in enumerate({**changes, "rolled": lambda w: np.roll(w, 1)}.items()):
        node, name, weight = found[number * (len(found) - 1) // len(changes)]
        changed = onnx.load(model)
        tensor = next(tensor for tensor in changed.graph.initializer if tensor.name == name)
        tensor.CopyFrom(numpy_helper.from_array(change(weight), name))
        other = folder / case.replace(" ", "") / "model.onnx"
        other.parent.mkdir(exist_ok=True)
        onnx.save(changed, other)
        yield case, node, other


def faults(model: Path, file: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield a node and a copy of a file in which its weight is another, twice if the file has two of the weights."""
    found = [(node, weight) for node, _, weight in weights(onnx.load(model).graph)]
    kinds = ((lambda w: w * np.float32(1.1)), (lambda w: np.roll(w, 1)))
    for number, change in enumerate(kinds):
        for node, weight in found if number == 0 else found[::-1]:
            changed = folder / f"fault{number + 1}" / file.name
            if replaced(file, changed, weight, change):
                yield node, changed
                break


def replaced(file: Path, changed: Path, weight: np.ndarray, change: Callable[[np.ndarray], np.ndarray]) -> bool:
    """Write a copy of a file, and of those beside it, with a weight changed; say whether it has that weight."""
    changed.parent.mkdir(parents=True, exist_ok=True)
    done = False
    for source in sorted(file.parent.glob(f"{file.stem}.*")) if file.suffix in (".param", ".model") else [file]:
        content = source.read_bytes()
        for axes in () if done else itertools.permutations(range(weight.ndim)):
            old = np.ascontiguousarray(weight.transpose(axes)).ravel()
            pair = [array.astype("<f4").tobytes() for array in (old, change(old))]
            if content.count(pair[0]) == 1:
                content, done = content.replace(*pair), True
                break
        (changed.parent / source.name).write_bytes(content)
    return done


def called(command: Sequence[str | Path], folder: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": "", "PATH": f"{Path(command[0]).parent}:{os.environ['PATH']}"}
    subprocess.run(list(map(str, command)), cwd=folder, env=environment, check=True, capture_output=True)


def litert(python: str, model: Path, folder: Path, *switches: str) -> Path:
    own = folder / "model.onnx"
    own.write_bytes(model.read_bytes())  # onnx2tf writes to what it is given
    called([python, "-m", "onnx2tf", "-i", own, "-o", folder, "-n", *switches], folder)
    return folder / f"model_{'dynamic_range_quant' if switches else 'float32'}.tflite"


def quantized_by(quantizer: str, recipe: str, python: str, model: Path, folder: Path) -> Path:
    """Return a float file of LiteRT's, quantized by another tool than its converter."""
    code = (
        "import sys; from ai_edge_quantizer import quantizer, recipe\n"
        "made = quantizer.Quantizer(sys.argv[1]); made.load_quantization_recipe(getattr(recipe, sys.argv[3])())\n"
        "made.quantize().export_model(sys.argv[2], overwrite=True)\n"
    )
    called([quantizer, "-c", code, litert(python, model, folder), folder / "quantized.tflite", recipe], folder)
    return folder / "quantized.tflite"


def mnn(python: str, model: Path, folder: Path, *switches: str) -> Path:
    code = "import sys, _tools; _tools.mnnconvert(['mnnconvert'] + sys.argv[1:])"
    made = folder / "model.mnn"
    words = ["-f", "ONNX", "--modelFile", model, "--MNNModel", made, "--bizCode", "bench", *switches]
    called([python, "-c", code, *words], folder)
    return made


def ncnn(python: str, model: Path, folder: Path) -> Path:
    own = folder / "model.onnx"
    own.write_bytes(model.read_bytes())
    graph, letters = onnx.load(model).graph, {1: "f32", 7: "i64"}
    shapes = [
        str([size.dim_value for size in value.type.tensor_type.shape.dim]).replace(" ", "")
        + letters[value.type.tensor_type.elem_type]
        for value in graph.input
    ]
    program = next(Path(python).parents[1].glob("lib/python*/site-packages/pnnx/pnnx"))
    called([program, own, f"inputshape={','.join(shapes)}", "fp16=0"], folder)
    for ending in (".param", ".bin"):
        (folder / f"model.ncnn{ending}").rename(folder / f"model{ending}")
    return folder / "model.param"


def rknn(python: str, model: Path, folder: Path) -> Path:
    feed = np.load(model.with_suffix(".npz"))
    names = [value.name for value in onnx.load(model).graph.input]
    for name in names:
        np.save(folder / f"{name}.npy", feed[name])
    (folder / "dataset.txt").write_text(" ".join(f"{name}.npy" for name in names) + "\n")
    code = (
        "import sys; from tensortriage_engines.rknn.worker.toolkit import toolkit\n"
        "network = toolkit()(verbose=False); network.config(target_platform='rk3588')\n"
        "assert network.load_onnx(sys.argv[1]) == 0\n"
        "assert network.hybrid_quantization_step1(dataset='dataset.txt') == 0\n"
    )
    root = Path(__file__).parent.parent
    paths = os.pathsep.join(map(str, (root / "src", root / "worker")))
    environment = {**os.environ, "PYTHONPATH": paths}
    subprocess.run([python, "-c", code, str(model)], cwd=folder, env=environment, check=True, capture_output=True)
    return folder / f"{model.stem}.model"


CONVERTERS: dict[str, Callable[[str, Path, Path], Path]] = {
    "litert": litert, "mnn": mnn, "ncnn": ncnn, "rknn": rknn,
}  # fmt: skip
QUANTIZERS: dict[str, Callable[[str, Path, Path], Path]] = {
    "litert": lambda *given: litert(*given, "-odrqt"), "mnn": lambda *given: mnn(*given, "--weightQuantBits", "8"),
}  # fmt: skip


def show(row: Row) -> None:
    mark = "ok " if row.right else "BAD"
    culprits = f"{row.expected} -> {', '.join(row.culprits[:2]) or '-'}" if row.expected else row.words[:150]
    line = (
        f"{mark} {row.engine:22} {row.network:10} {row.case:10} {row.verdict:16} {row.seconds:6.1f} s CPU  {culprits}"
    )
    print(" ".join(line.split("\n")), flush=True)


def summarise(name: str, rows: Sequence[Row]) -> None:
    healthy = [row for row in rows if not row.expected and row.case == "healthy" and row.verdict not in REFUSED]
    faulty = [row for row in rows if row.expected]
    refused = [row for row in rows if row.verdict in REFUSED or row.case == "conversion"]
    print(
        f"== {name}: {sum(not row.right for row in healthy)} false alarms on {len(healthy)} healthy, "
        f"{sum(row.right for row in faulty)} of {len(faulty)} faults named, {len(refused)} refused, "
        f"{sum(row.seconds for row in rows) / max(len(rows), 1):.1f} s CPU a diagnosis",
        flush=True,
    )


if __name__ == "__main__":
    main()

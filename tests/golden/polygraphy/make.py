"""Makes the files of this directory with the real Polygraphy: ``python make.py``, in an environment that has 0.53.6."""

import base64
import hashlib
import io
import json
import warnings
from pathlib import Path

import numpy as np
import polygraphy
from polygraphy.common import TensorMetadata
from polygraphy.comparator import (
    AccuracyResult,
    AccuracyResults,
    Comparator,
    CompareFunc,
    CosineSimilarityCompareFunc,
    DataLoader,
    IterationResult,
    L2CompareFunc,
    PsnrCompareFunc,
    RunResults,
    SnrCompareFunc,
)
from polygraphy.json import save_json
from polygraphy.json.serde import IterationWriter

assert polygraphy.__version__ == "0.53.6"
HERE = Path(__file__).parent

CASES = [
    {"inputs": [["x", "float32", [2, 3]]]},
    {"inputs": [["x", "float32", [2, 3]], ["ids", "int64", [4]], ["b", "bool", [3, 2]], ["h", "float16", [5]]]},
    {"inputs": [["x", "float32", ["batch", 3, None]], ["y", "float64", [-1]]], "seed": 7, "iterations": 3},
    {"inputs": [["x", "float32", [8]], ["ids", "int32", [8]]], "val_range": {"": [-2, 2.5], "ids": [5, 30521]}},
    {"inputs": [["x", "float32", [8]], ["y", "float16", [8]]], "val_range": {"x": [-1e5, 1e5], "y": [-1e5, 1e5]}},
    {"inputs": [["u", "float32", [4]]], "val_range": {"": ["-inf", 3]}},
    {"inputs": [["u", "float32", [4]]], "val_range": {"": [3, "inf"]}},
    {"inputs": [["u", "float64", [4]]], "val_range": {"": ["-inf", "inf"]}},
    {"inputs": [["a", "uint8", [6]], ["b", "int8", [6]], ["c", "uint64", [6]]], "val_range": {"": [0, 100]}},
    {"inputs": [["a", "int8", [6]]], "val_range": {"": [-128, 127]}, "seed": 0},
    {"inputs": [["s", "float32", []], ["i", "int64", []], ["z", "float32", [0, 3]], ["t", "int32", [2]]]},
    {"inputs": [["img", "float32", ["n", 3, "h", "w"]], ["q", "int64", ["n"]]], "shapes": {"img": [2, 3, 4, 5]}},
    {"inputs": [["img_0", "float32", ["n", 3]], ["img_1", "float32", ["n", 3]]], "shapes": {"img_*": [2, 3]}},
    {"inputs": [["size", "int64", [2]], ["x", "float32", [3]]], "shapes": {"size": [5, 7]}},
    {"inputs": [["n", "int64", [1]], ["x", "float32", [3]]], "shapes": {"n": [1]}},
    {"inputs": [["a", "bool", [9]]], "val_range": {"": [0, 0]}},
]


def random_numbers():
    for case in CASES:
        metadata, given = TensorMetadata(), TensorMetadata()
        for name, dtype, shape in case["inputs"]:
            metadata.add(name, np.dtype(dtype), tuple(shape))
        for name, shape in case.get("shapes", {}).items():
            given.add(name, None, tuple(shape))
        ranges = {name: tuple(map(float, pair)) for name, pair in case.get("val_range", {}).items()}
        options = {key: case[key] for key in ("seed", "iterations") if key in case}
        loader = DataLoader(input_metadata=given, val_range=ranges or None, **options)
        loader.input_metadata = metadata
        case["feeds"] = [
            {
                name: {
                    "dtype": str(array.dtype),
                    "shape": list(array.shape),
                    "sha256": hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest(),
                    "first": [repr(v) for v in array.reshape(-1)[:3].tolist()],
                }
                for name, array in feed.items()
            }
            for feed in loader
        ]
    text = ",\n".join(json.dumps(case) for case in CASES)
    (HERE / "random.json").write_text(f"[\n{text}\n]\n")


FEEDS = [{"x": np.arange(6, dtype=np.float32).reshape(2, 3) * k, "ids": np.array([k, -1])} for k in (1, 2)]
OUTPUTS = [{"y": feed["x"] + 0.25, "z": np.array([np.nan, np.inf, k])} for k, feed in enumerate(FEEDS)]


def files():
    save_json(FEEDS, str(HERE / "inputs.json"))
    results, close = RunResults(), [{"y": o["y"] + np.float32(0.01), "z": np.ones(3)} for o in OUTPUTS]
    for runner, outputs in (("onnxrt-runner", OUTPUTS), ("trt-runner", close)):
        results.append((runner, [IterationResult(o, 0.5 + i, runner) for i, o in enumerate(outputs)]))
    results.save(str(HERE / "outputs.json"))
    for name, items in (("inputs_dir", FEEDS), ("outputs_dir", results.split())):
        with IterationWriter(str(HERE / name)) as writer:
            for item in items:
                writer.append(item)
    results[0][1][:] = [IterationResult({"y": o["y"]}, 0.5, "onnxrt-runner") for o in OUTPUTS]
    results[1][1][:] = [IterationResult({"y": o["y"]}, 0.5, "trt-runner") for o in close]
    functions = [
        CompareFunc.simple(check_error_stat="max", atol=0.1, rtol=0.1),
        L2CompareFunc(l2_threshold=1e-3),
        CosineSimilarityCompareFunc(),
        PsnrCompareFunc(),
        SnrCompareFunc(),
        CompareFunc.indices(),
    ]
    Comparator.compare_accuracy(results, compare_func=functions).save(str(HERE / "accuracy.json"))
    elemwise = Comparator.compare_accuracy(results, compare_func=[CompareFunc.simple()])
    elemwise.save(str(HERE / "accuracy_elemwise.json"))
    shapes = AccuracyResults([AccuracyResult({("r0", "r1"): [{"y": False}]})])
    shapes.save(str(HERE / "accuracy_shape.json"))


def legacy():
    """The two older encodings that Polygraphy still reads, by hand: no released version here writes them."""
    array, npy, npz = FEEDS[0]["x"], io.BytesIO(), io.BytesIO()
    np.save(npy, array)
    np.savez(npz, array)
    marker = "polygraphy_serialized_json_type"
    latin = {"array": npy.getvalue().decode("latin-1"), "__polygraphy_encoded_ndarray": marker}
    packed = {"array": base64.b64encode(npz.getvalue()).decode(), "__polygraphy_encoded_ndarray": marker}
    (HERE / "legacy_inputs.json").write_text(json.dumps([{"x": latin}, {"x": packed}]))
    lazy = {"values": packed, "polygraphy_class": "LazyNumpyArray"}
    iteration = {"outputs": {"y": lazy}, "runtime": None, "runner_name": "r"}
    iteration["__polygraphy_encoded_IterationResult"] = marker
    results = {"lst": [["r", [iteration]]], "__polygraphy_encoded_RunResults": marker}
    (HERE / "legacy_outputs.json").write_text(json.dumps(results))
    assert np.array_equal(RunResults.load(str(HERE / "legacy_outputs.json"))["r"][0]["y"], array)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    random_numbers()
    files()
    legacy()

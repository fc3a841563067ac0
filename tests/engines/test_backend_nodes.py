"""ONNX's own backend test models survive everything that `model` does to a graph, on ONNX Runtime.

The models and the expected data are ONNX's (onnx.backend.test): every operator at every opset that changed it, function
bodies, sequences, optionals, strings, every element type. A case is left out only when ONNX Runtime cannot load or run
the untouched file. What is changed by a transformation must give the untouched file's results bit for bit, or, where
ONNX Runtime computes a marked graph otherwise (it drops the Casts between fp16 kernels, except at outputs), the
expected data within the tolerance of the case.

A quarter of the cases, chosen by their names, runs by default, and a quarter of those is sanitized as well, then cut
out whole and marked. TRIAGE_ALL_BACKEND_NODES=1 runs all of it: of 1,910 cases ONNX Runtime 1.31.1 cannot load or run
144, and the other 1,766 survive.
"""

import collections
import logging
import os
import warnings
import zlib

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from machine import numpy_seeded
from tensortriage.model.cutting.extract import extract
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.model.transforms.constant_folding import FoldOptions
from tensortriage.model.transforms.mark_outputs import mark_outputs, markable
from tensortriage.workflows.edits.edit_pipeline import apply_passes
from tensortriage_surgeon.requests import SanitizeRequest
from tensortriage_surgeon.sanitize import passes_of

pytestmark = [pytest.mark.slow, pytest.mark.lengthy]

EVERYTHING = bool(os.environ.get("TRIAGE_ALL_BACKEND_NODES"))
NEWEST_IR, NEWEST_OPSET = 13, 26  # ONNX Runtime 1.31 refuses files of IR 14 and lacks most operators of opset 28
LOOSEST = {"rtol": 1e-3, "atol": 1e-7}  # the tolerances of onnx.backend.test.runner
HALF_STEPS = 4  # of float16 near 1: what rounding the results in between, or not, does to a softmax of them


def test_every_backend_node_model_survives(tmp_path, monkeypatch):
    monkeypatch.setenv("ALLOW_RELEASED_ONNX_OPSET_ONLY", "0")
    counts, failures = collections.Counter(), []
    for case in backend_cases():
        counts["cases"] += 1
        failures += [f"{case.name}: {text}" for text in examine(case, tmp_path, counts)]
    logging.getLogger(__name__).info("backend node models: %s", dict(counts))  # pytest --log-cli-level=INFO shows it
    assert not failures, "\n".join(failures)
    # Of 1,910 cases ONNX Runtime 1.31.1 runs 1,766; if it suddenly runs few, nothing has been tested.
    assert counts["survived"] > 0.75 * counts["cases"]


def backend_cases():
    """Return the cases that carry a model, each name once."""
    with numpy_seeded(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of numpy, about overflows that ONNX's authors want
        from onnx.backend.test.case.model import collect_testcases as collect_models
        from onnx.backend.test.case.node import collect_testcases as collect_nodes

        found = {case.name: case for case in (*collect_nodes(None), *collect_models()) if case.model is not None}
    return [case for name, case in found.items() if EVERYTHING or zlib.crc32(name.encode()) % 4 == 0]


def examine(case, folder, counts):
    """Yield what is wrong with what became of one case."""
    path = folder / "model.onnx"
    inputs, expected = case.data_sets[0]
    names = [value.name for value in case.model.graph.output]
    feed = {value.name: plain(array) for value, array in zip(case.model.graph.input, inputs, strict=False)}
    try:
        wanted, again = untouched(case.model, path, feed, names)
    except Exception:  # whatever ONNX Runtime says of the untouched file
        counts["left out, ONNX Runtime cannot"] += 1
        return
    if not equal(wanted, again):
        counts["random"] += 1
        wanted, expected = None, None
    elif not close(expected, wanted, case):
        counts["other numbers, untouched"] += 1
        expected = None
    model = Model.load(path)
    failed = False
    for name, changed in variants(model, names, folded=EVERYTHING or zlib.crc32(case.name.encode()) % 16 == 0):
        changed.save(folder / f"{name}.onnx")
        try:
            found = run(folder / f"{name}.onnx", feed, names)
        except Exception as error:  # of any of ONNX Runtime's kinds
            failed = True
            yield f"{name} does not run: {error}"
            continue
        if not (wanted is None or equal(wanted, found) or (expected is not None and close(expected, found, case))):
            failed = True
            yield f"{name} gives other numbers"
    counts["survived"] += not failed


def untouched(message, path, feed, names):
    """Return what two runs of a message give; stamped with an older version when ONNX Runtime is behind ONNX."""
    message.ir_version = min(message.ir_version, NEWEST_IR)
    standard = next((opset for opset in message.opset_import if opset.domain == ""), None)
    path.write_bytes(message.SerializeToString())
    try:
        return [run(path, feed, names) for _ in range(2)]
    except Exception:
        if standard is None or standard.version <= NEWEST_OPSET:
            raise
    standard.version = NEWEST_OPSET  # most operators of a new opset are the old ones with more element types
    path.write_bytes(message.SerializeToString())
    return [run(path, feed, names) for _ in range(2)]


def variants(model, outputs, *, folded):
    """Yield everything that is done to a model, by name; folding takes ten times as long as all else together."""
    yield "saved", model
    yield "marked", mark_outputs(model, markable(model))
    yield "extracted", whole(model, outputs)
    if folded:
        yield "sanitized", (clean := sanitized(model))
        cut = whole(clean, outputs)
        yield "sanitized, extracted and marked", mark_outputs(cut, markable(cut))


def sanitized(model):
    """Return what ``triage surgeon sanitize --fold-constants --cleanup`` makes of a model."""
    request = SanitizeRequest(source="unused.onnx", target="unused.onnx", fold=FoldOptions(), clean=True)
    return apply_passes(model, passes_of(model, request))[-1].model


def whole(model, outputs):
    """Return a model with all its nodes cut out of it; itself when folding turned an output into a constant."""
    made = {name for node in model.graph.nodes for name in node.outputs}
    nodes = [node.name for node in model.graph.nodes]
    return extract(model, nodes, specs=value_specs(model), outputs=outputs) if made >= set(outputs) else model


def run(path, feed, names):
    """Return the first outputs, in the order of the names; tensors of any element type, sequences and optionals."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    fed = {value.name: feed[value.name] for value in session.get_inputs() if feed.get(value.name) is not None}
    typed = all(isinstance(array, np.ndarray) and array.dtype.kind not in "USO" for array in fed.values())
    if not typed or not all(value.type.startswith("tensor(") for value in session.get_outputs()):
        return [plain(value) for value in session.run(names, fed)]
    return list(engine_run(session, names, fed))


def engine_run(session, names, fed):
    """Run through OrtValues, which know the element types that numpy lacks."""
    from tensortriage.engines.onnxruntime.ort_values import to_array, to_ort_value

    values = {name: to_ort_value(ort, array) for name, array in fed.items()}
    places = {value.data_ptr() for value in values.values()}
    return (to_array(value, places) for value in session.run_with_ort_values(names, values))


def plain(value):
    """Return test data as arrays, lists of arrays, or None."""
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if value is None or isinstance(value, dict):
        return value
    return np.require(value, requirements="C")


def equal(wanted, found):
    """Say whether results are the same, bit for bit."""
    if isinstance(wanted, list):
        return isinstance(found, list) and len(wanted) == len(found) and all(map(equal, wanted, found))
    if not isinstance(wanted, np.ndarray) or not isinstance(found, np.ndarray):
        return wanted is found or wanted == found
    if wanted.dtype.kind in "USO":
        return bool(np.array_equal(wanted, found))
    return (wanted.dtype, wanted.shape, wanted.tobytes()) == (found.dtype, found.shape, found.tobytes())


def close(expected, found, case):
    """Say whether results are the expected data, within the tolerance of the case."""
    if isinstance(expected, list | tuple):
        return len(expected) == len(found) and all(close(*pair, case) for pair in zip(expected, found, strict=True))
    expected, found = plain(expected), plain(found)
    if not isinstance(expected, np.ndarray) or expected.dtype.kind in "USO":
        return equal(expected, found)
    if expected.shape != found.shape:
        return False
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    rounding = HALF_STEPS * float(np.finfo(np.float16).eps) if expected.dtype == np.float16 else 0.0
    limits = {"rtol": max(case.rtol, LOOSEST["rtol"]), "atol": max(case.atol, LOOSEST["atol"], rounding)}
    return bool(np.allclose(found.astype(wide), expected.astype(wide), equal_nan=True, **limits))


@pytest.mark.parametrize(
    ("wanted", "found", "same"),
    [
        ([np.float32([1.0])], [np.float32([1.0])], True),
        ([np.float32([0.0])], [np.float32([-0.0])], False),
        ([[np.int64([1])], None], [[np.int64([1])], None], True),
        ([np.float32([1.0])], [np.float64([1.0])], False),
        ([np.array(["a"], object)], [np.array(["b"], object)], False),
    ],
)
def test_the_judge_tells_results_apart(wanted, found, same):
    assert equal(wanted, found) is same

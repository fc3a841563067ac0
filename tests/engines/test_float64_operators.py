"""Every operator of the engine ``float64`` against the examples that belong to the ONNX operator specifications."""

import collections
import functools
import importlib
import pkgutil
import warnings

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from machine import numpy_seeded
from tensortriage.engines.float64.engine import BORROWED, Float64Session
from tensortriage.engines.float64.kernels import kernel_names
from tensortriage.errors import BuildFailed, EngineError
from tensortriage.model.model import Model

WIDE = {onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16, onnx.TensorProto.DOUBLE}
DISAGREE = {
    # -2.5 / (5 / 255) is a tie between two integers in float64 and beside one in float32.
    "test_dynamicquantizelinear",
    # The example takes the length of the resized axis with its fraction; the text, and ONNX Runtime, without.
    "test_resize_downsample_scales_linear_align_corners",
    "test_resize_downsample_scales_cubic_align_corners",
    # Random by design.
    "test_training_dropout",
    "test_training_dropout_default",
    "test_training_dropout_mask",
    "test_training_dropout_default_mask",
}
# No example, none that takes and gives tensors in an operator set of at least 7, or a slow one.
WITHOUT_EXAMPLE = {"AveragePool", "GlobalLpPool", "LpPool", "MaxPool", "Not", "Scatter", "Upsample"}
NOT_NUMERIC = {op for op in BORROWED if op.startswith(("Sequence", "Optional", "String", "Regex"))} | {
    "ConcatFromSequence",
    "SplitToSequence",
    "NonMaxSuppression",  # gives indices
    "MaxUnpool",  # moves values
    "Col2Im",  # adds values of the examples without rounding
}


# Computing these examples takes ten seconds in plain Python; `unit/engines/kernels/test_pooling.py` tests them instead.
SLOW = {"averagepool", "lppool", "maxpool"}


@functools.cache
def cases():
    from onnx.backend.test.case import node as examples

    with numpy_seeded(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the examples divide by zero on purpose
        for module in pkgutil.iter_modules(examples.__path__):
            if module.name not in SLOW:
                importlib.import_module(f"{examples.__name__}.{module.name}")
    # The list that importing the examples fills; the public function would import the slow ones as well, and has done
    # so where other tests of this process called it.
    left_out = tuple(f"test_{name}" for name in SLOW)
    return [
        case for case in examples._NodeTestCases if "_expanded" not in case.name and not case.name.startswith(left_out)
    ]


def session_for(proto):
    return Float64Session(Model.from_ir(ir.from_proto(proto)))


def arrays(values):
    return [onnx.numpy_helper.to_array(v) if isinstance(v, onnx.TensorProto) else v for v in values]


def feed_of(case, inputs):
    return {spec.name: np.asarray(x) for spec, x in zip(case.model.graph.input, arrays(inputs), strict=True)}


def agrees(found, expected):
    expected = np.asarray(expected)
    if expected.dtype.kind in "OUS":
        words = [word.decode() if isinstance(word, bytes) else str(word) for word in expected.ravel()]
        return [str(word) for word in found.ravel()] == words
    if found.shape != expected.shape:
        return False
    if expected.dtype.kind == "c":
        return np.allclose(found, expected, rtol=1e-3, atol=1e-5)
    coarse = expected.dtype.itemsize <= 2 and expected.dtype.kind not in "iub"  # the examples' own rounding
    rtol, atol = (2e-2, 2e-3) if coarse else (1e-3, 1e-5)
    return np.allclose(found.astype(np.float64), expected.astype(np.float64), rtol=rtol, atol=atol, equal_nan=True)


def test_examples_of_the_specifications():
    seen, wrong = collections.Counter(), set()
    for case in cases():
        try:
            session = session_for(case.model)
        except BuildFailed:
            continue
        for inputs, outputs in case.data_sets:
            try:
                found = session.run(feed_of(case, inputs))
            except EngineError as error:
                wrong.add(f"{case.name}: {error}" if case.name not in DISAGREE else case.name)
                continue
            for spec, expected in zip(case.model.graph.output, arrays(outputs), strict=True):
                wide = spec.type.tensor_type.elem_type in WIDE
                if not agrees(found[spec.name], expected) or (wide and found[spec.name].dtype != np.float64):
                    wrong.add(case.name)
        seen.update({node.op_type for node in case.model.graph.node})
    assert wrong == DISAGREE
    assert kernel_names() - seen.keys() <= WITHOUT_EXAMPLE
    assert sum(seen.values()) > 1100


@pytest.mark.parametrize("op_type", sorted(BORROWED - NOT_NUMERIC))
def test_borrowed_implementations_keep_float64(op_type):
    """A change of the inputs far below float32's resolution must reach the outputs."""
    moved = False
    for case in cases():
        if case.model.graph.node[0].op_type != op_type or moved:
            continue
        proto = onnx.ModelProto()
        proto.CopyFrom(case.model)
        for info in proto.graph.input:
            if info.type.tensor_type.elem_type in WIDE:
                info.type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
        session = session_for(proto)
        feed = feed_of(case, case.data_sets[0][0])
        wide = {n: x.astype(np.float64) if x.dtype.kind == "f" else x for n, x in feed.items()}
        nudged = {n: x * (1 + 2.0**-40) if x.dtype.kind == "f" else x for n, x in wide.items()}
        before, after = session.run(wide), session.run(nudged)
        moved = all(
            np.any(before[name] != after[name]) or not np.any(before[name])
            for name in before
            if before[name].dtype.kind == "f"
        )
    assert moved

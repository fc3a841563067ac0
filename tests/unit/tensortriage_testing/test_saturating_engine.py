"""The stand-in for ONNX Runtime without VNNI: what it loses, and what it does not."""

import contextlib

import numpy as np
import pytest
from onnx import numpy_helper

import models
from tensortriage_testing import SaturatingEngine, quantized, save_model

FEED = {"x": np.full((4, 8), 1.0, np.float32)}
"""255 of 255 steps of its quantizer, in every place."""


@pytest.fixture
def run(tmp_path):
    def run(weight, **options):
        message = models.proto("g (float[4, 8] x) => (float[4, 3] y) { [product] y = MatMul(x, w) }")
        message.graph.initializer.append(numpy_helper.from_array(np.full((8, 3), 1.0, np.float32), "w"))
        message = quantized(message, FEED)
        for tensor in message.graph.initializer:
            if tensor.name == "w_quantized":
                tensor.CopyFrom(numpy_helper.from_array(np.full((8, 3), weight, np.int8), tensor.name))
        path = save_model(message, tmp_path / "m.onnx")
        with contextlib.closing(SaturatingEngine().compile(path, options)) as session:
            return session.run(FEED)["y"]

    return run


def test_each_pair_ends_where_int16_does(run):
    """Of eight terms of 255 x 127 four pairs are 64770, and 32767 is left of each."""
    expected = 8 * 32767 / (2 * 255 * 127)
    np.testing.assert_allclose(run(127), np.full((4, 3), expected), rtol=1e-5)


@pytest.mark.parametrize(("weight", "options"), [(64, {}), (127, {"fused": "false"})])
def test_it_is_exact_where_pairs_fit_or_are_not_fused(run, weight, options):
    np.testing.assert_allclose(run(weight, **options), np.full((4, 3), 8 * weight / 127), rtol=1e-5)


def test_a_fault_may_be_planted_as_well(run):
    found = run(64, kind="scale", node="product", amount="2")
    np.testing.assert_allclose(found, np.full((4, 3), 16 * 64 / 127), rtol=1e-5)

"""Whether quantized weights are the original's: rounded ones are, others are not, and what was moved is told."""

import numpy as np
import pytest
from onnx import numpy_helper

from models import proto
from tensortriage.diagnose.rungs.quantization.model_errors import Quantization, output_errors
from tensortriage.diagnose.rungs.quantization.other_weights import moves_of, of_other_weights
from tensortriage.diagnose.state.verdict import VerdictKind
from tensortriage.model.model import Model
from tensortriage.model.similarity.correspondence import Correspondence
from tensortriage_testing import quantized, save_model

RNG = np.random.default_rng(7)
ONE, TWO = (RNG.standard_normal((16, 16)).astype(np.float32) for _ in range(2))
FEED = {"x": RNG.standard_normal((8, 16)).astype(np.float32)}


def network(one=ONE, two=TWO):
    """x -> MatMul -> Relu -> MatMul -> y."""
    message = proto("""g (float[8, 16] x) => (float[8, 16] y) {
        [first] a = MatMul(x, one)
        [kink] b = Relu(a)
        [second] y = MatMul(b, two)
    }""")
    tensors = {"one": one, "two": two}
    message.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in tensors.items())
    return message


@pytest.fixture
def judged(investigate, tmp_path):
    """Return a function that asks about a quantized network with these weights; investigation, verdict, moves."""

    def judge(**changed):
        inv = investigate(network(), FEED)
        small = Model.load(save_model(quantized(network(**changed), FEED), tmp_path / "small.onnx"))
        beside, feed = Correspondence.of(inv.model, small), inv.question.feeds[0]
        # The numbers are known to be those of the original, however little they are like what is there now.
        weights = {"one_dequantized": ONE, "two_dequantized": TWO}
        before = output_errors(inv, small, feed)
        verdict = of_other_weights(inv, Quantization(beside, feed, weights, before, {"y": 1e-7}))
        return verdict, {name: moves_of(small.graph, name, weights) for name in weights}

    return judge


def test_weights_that_are_only_rounded_are_the_originals(judged):
    verdict, moves = judged()
    assert verdict is None
    assert moves == {"one_dequantized": (), "two_dequantized": ()}


def test_noise_of_less_than_a_step_is_none(judged):
    step = np.abs(ONE).max(axis=0) / 127
    noise = np.random.default_rng(1).uniform(-0.4, 0.4, ONE.shape).astype(np.float32)
    assert judged(one=ONE + noise * step)[0] is None


def test_other_weights_are_the_change(judged):
    noise = np.random.default_rng(2).standard_normal(TWO.shape).astype(np.float32)
    verdict, moves = judged(two=TWO + 0.5 * noise)
    assert verdict.kind is VerdictKind.MODEL_CHANGED
    assert [(each.node, each.change) for each in verdict.culprits] == [("second", "weight")]
    assert "in all its rows or columns" in verdict.culprits[0].reason
    assert moves["two_dequantized"] == ()
    assert verdict.confidence_on("real") > 0.5


def test_all_that_changed_is_named(judged):
    noise = np.random.default_rng(3).standard_normal(ONE.shape).astype(np.float32)
    verdict, _ = judged(one=ONE + noise, two=TWO + noise)
    assert {each.node for each in verdict.culprits} == {"first", "second"}
    assert " and 1 more " in verdict.summary


def test_rows_that_were_exchanged_are_told_though_they_make_little_of_the_error(judged):
    exchanged = TWO.copy()
    exchanged[[2, 3]] = TWO[[3, 2]]
    verdict, moves = judged(two=exchanged)
    assert (verdict.kind, verdict.culprits[0].node) == (VerdictKind.MODEL_CHANGED, "second")
    assert moves["two_dequantized"]
    assert moves["two_dequantized"][0].words in verdict.culprits[0].reason
    assert "all its rows" not in verdict.culprits[0].reason


def test_weights_that_were_rescaled_together_leave_the_model_what_it_was(judged):
    """A Relu lets a positive factor through, so that what one weight gains and the other loses is nothing."""
    factors = np.float32([4, 1] * 8)
    verdict, moves = judged(one=ONE * factors, two=TWO / factors[:, None])
    assert moves["one_dequantized"]
    assert verdict is None

"""A model in training mode: both engines compute the same, and the verdict says so all the same."""

import numpy as np
import pytest

from diagnosing import ask, step

NORM = """
    <ir_version: 8, opset_import: ["": 17]>
    g (float[4, 3] x) => (float[4, 3] y)
    <float[3] s = {1, 2, 1}, float[3] b = {0, 1, 0}, float[3] m = {0.5, 0, 0}, float[3] v = {1, 3, 1}> {
        [bn] n = BatchNormalization <training_mode = MODE> (x, s, b, m, v)
        [act] y = Relu(n) }"""
DROP = """
    <ir_version: 8, opset_import: ["": 17]>
    g (float[4, 3] x) => (float[4, 3] y) <float half = {0.5}, bool on = {MODE}> {
        [exp] e = Exp(x)
        [drop] y = Dropout(e, half, on) }"""
FEED = {"x": np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)}
PLAIN = "onnxruntime:optimization=none"


@pytest.mark.parametrize("mode", [0, 1])
def test_a_match_says_that_the_model_is_in_training_mode(tmp_path, mode):
    text = NORM.replace("MODE", str(mode)).replace("n = Batch", "n, _m, _v = Batch" if mode else "n = Batch")
    verdict, _ = ask(tmp_path, text, FEED, PLAIN)
    told = "left in training mode: BatchNormalization 'bn': it is in training mode" in verdict.summary
    asked = any(each.question == "is the model meant for inference?" for each in verdict.steps)
    assert (verdict.verdict, told, asked) == ("match", bool(mode), bool(mode)), verdict.summary


def test_a_dropout_that_is_left_on(tmp_path):
    verdict, _ = ask(tmp_path, DROP.replace("MODE", "1"), FEED, PLAIN)
    assert "Dropout 'drop': it is left on" in verdict.summary
    assert step(verdict, "is the model meant").evidence["nodes"] == {"drop": "dropout-in-training"}

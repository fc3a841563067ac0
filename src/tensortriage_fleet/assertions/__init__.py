"""Assertions about models for tests: is one sound on an engine, are outputs its own, do engines agree?

    from tensortriage_fleet.assertions import assert_sound


    def test_export():
        assert_sound("model.onnx", target="openvino:precision=fp16", inputs="golden.npz")

Nothing heavy is imported before the first is called.
"""

from tensortriage_fleet.assertions.checks import assert_close as assert_close
from tensortriage_fleet.assertions.checks import assert_same as assert_same
from tensortriage_fleet.assertions.checks import assert_sound as assert_sound

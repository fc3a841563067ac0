"""A crash of onnx's C++ code is an answer; the hostile models are those of test_inference."""

from concurrent.futures import ThreadPoolExecutor

import pytest

import models
from tensortriage.errors import ModelError
from tensortriage.model.ir.onnx_subprocess import ExtensionFailed, call_extension
from tensortriage.model.transforms.opset_upgrade import require_opset

CRASHES = """
    g (float[2, 3, 5] x, float[5] w, float[5] b) => (float[A, B] z) {
        y, mean, deviation = LayerNormalization <axis = 9223372036854775807> (x, w, b)
        z = Neg(mean)
    }"""


def test_a_result_is_the_bytes_that_the_call_gives():
    assert call_extension("model[::-1]", b"abc") == b"cba"


def test_what_the_extension_says_is_the_reason():
    with pytest.raises(ExtensionFailed, match="division by zero"):
        call_extension("1 / 0", b"")


def test_a_call_that_does_not_return_ends():
    with pytest.raises(ExtensionFailed, match=r"no result within 0\.3 s"):
        call_extension("__import__('time').sleep(60)", b"", limit_seconds=0.3)


@pytest.mark.parametrize(
    "call", ["__import__('os').abort()", "__import__('time').sleep(60)", "bytearray(5 << 30)", "1 / 0"]
)
def test_a_call_that_fails_leaves_nothing_to_the_next(call):
    with pytest.raises(ExtensionFailed):
        call_extension(call, b"", limit_seconds=0.5)
    assert call_extension("model", b"next") == b"next"


def test_what_a_call_does_to_its_process_ends_with_it():
    call_extension("[__import__('os').environ.update(LEFT='behind'), b''][1]", b"")
    assert call_extension("__import__('os').environ.get('LEFT', '').encode()", b"") == b""


def test_calls_of_several_threads_each_get_their_own_result():
    sent = [bytes([number]) * 100_000 for number in range(8)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda model: call_extension("model", model), sent)) == sent


def test_the_process_is_started_once():
    starts = {call_extension("str(__import__('os').getppid()).encode()", b"") for _ in range(3)}
    assert len(starts) == 1


def test_a_crash_of_the_version_converter_is_an_error_that_says_so():
    with pytest.raises(ModelError, match="cannot be converted: onnx crashed on it") as caught:
        require_opset(models.parse(CRASHES), models.parse(CRASHES).opset + 1)
    assert caught.value.slug == "opset-too-old"

import pytest

from tensortriage.engines.cpu_features import sums_in_int16


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("sse4_2 ssse3 avx avx2 fma", True),  # Haswell, Zen 3
        ("ssse3 avx2 avx512f avx512bw", True),  # Skylake-SP
        ("ssse3 avx2 avx512f avx512_vnni", False),  # Cascade Lake
        ("ssse3 avx2 avx_vnni", False),  # Alder Lake
        ("asimd asimddp", False),  # Arm, whose SDOT sums in int32
        ("", False),
    ],
)
def test_only_x86_without_vnni(flags, expected):
    for engine in ("onnxruntime", "openvino", "a script"):
        assert sums_in_int16(engine, frozenset(flags.split())) is expected
    assert not sums_in_int16("float64", frozenset(flags.split()))


def test_the_processor_here_can_be_asked():
    assert sums_in_int16() in (True, False)

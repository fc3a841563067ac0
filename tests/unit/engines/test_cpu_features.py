import pytest

from machine import NEWER, OLDER, be_processor
from tensortriage.engines.cpu_features import computes_bf16, processor, sums_in_int16, where_it_runs


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


OFFERED = "triage run model.onnx --target openvino:precision=bf16 --inputs real.npz"


@pytest.mark.parametrize(
    ("flags", "words", "offered"),
    [
        (NEWER, "with VNNI and bf16", OFFERED),
        (OLDER, "without VNNI and bf16", OFFERED.replace("openvino", "emulate")),
        (OLDER | {"avx_vnni"}, "without bf16", OFFERED.replace("openvino", "emulate")),
    ],
)
def test_bf16_is_offered_where_the_processor_has_it(monkeypatch, flags, words, offered):
    be_processor(monkeypatch, flags)
    assert (processor(), where_it_runs(OFFERED)) == (words, offered)
    assert where_it_runs("triage demo") == "triage demo"


def test_openvino_may_be_told_to_leave_instructions_out(monkeypatch):
    be_processor(monkeypatch, NEWER)
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "avx2")
    assert sums_in_int16("openvino")
    assert not computes_bf16()
    assert not sums_in_int16("onnxruntime")
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_AMX")
    assert computes_bf16()
    assert not sums_in_int16("openvino")

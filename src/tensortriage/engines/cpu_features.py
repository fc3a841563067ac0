"""Instructions of this processor, by which engines on it choose kernels and formats.

Flags are those that Linux lists; elsewhere none are known, and none count as missing.
"""

import functools
import os

_EXACT = frozenset({"avx512_vnni", "avx_vnni", "avx_vnni_int8", "amx_int8"})
"""Flags of instructions that sum products of 8-bit numbers in int32 (Intel 64 manual, VPDPBUSD, TDPBUSD)."""

_BF16 = frozenset({"avx512_bf16", "amx_bf16", "avx_ne_convert"})
"""Flags of instructions for bf16 (Intel 64 manual, VDPBF16PS, TDPBF16PS, VCVTNEPS2BF16)."""

_PLAIN_LIMITS = frozenset({"SSE41", "AVX", "AVX2", "AVX512_CORE"})
"""Values of oneDNN's ONEDNN_MAX_CPU_ISA, which OpenVINO reads, that leave out all of these."""

_OTHER_KERNELS = frozenset({"tensorrt", "float64", "emulate"})
"""Engines without int8 kernels of a CPU's."""

PAIRED_BY_TAP = frozenset({"openvino"})
"""Engines whose convolutions add no product of one tap to one of the next: an odd last channel stands alone."""


def sums_in_int16(engine: str = "onnxruntime", flags: frozenset[str] | None = None) -> bool:
    """Return whether an engine's int8 kernels here add pairs of products in saturating int16 (VPMADDUBSW).

    ONNX Runtime and OpenVINO do so on x86 without VNNI; the kernels of other engines are unknown, so they may.

    Args:
        engine: Its name.
        flags: Flags of a processor; None for this machine's.
    """
    flags = flags_for(engine) if flags is None else flags
    return engine not in _OTHER_KERNELS and bool({"ssse3", "avx2"} & flags) and not flags & _EXACT


def computes_bf16(flags: frozenset[str] | None = None) -> bool:
    """Return whether OpenVINO computes in bf16 on a processor, this machine's where no flags are given."""
    return bool((flags_for("openvino") if flags is None else flags) & _BF16)


def where_it_runs(text: str) -> str:
    """Return words that offer bf16 on OpenVINO; where this processor has none, they offer its emulation."""
    offered = "openvino:precision=bf16"
    return text if offered not in text or computes_bf16() else text.replace(offered, "emulate:precision=bf16")


def flags_for(engine: str) -> frozenset[str]:
    """Return the flags of this machine's processor that an engine goes by; empty where they are not known."""
    limited = engine == "openvino" and os.environ.get("ONEDNN_MAX_CPU_ISA", "").upper() in _PLAIN_LIMITS
    return _flags() - _EXACT - _BF16 if limited else _flags()


def processor() -> str:
    """Return the processor features that affect engines, in words for a report; empty if unknown."""
    if not _flags():
        return ""
    lacks = ["VNNI"] * sums_in_int16() + ["bf16"] * (not computes_bf16())
    return f"without {' and '.join(lacks)}" if lacks else "with VNNI and bf16"


@functools.cache
def _flags() -> frozenset[str]:
    if not hasattr(os, "uname") or os.uname().machine.lower() not in ("x86_64", "amd64"):
        return frozenset()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:  # as little is imported as can be: `triage --help` asks
            return frozenset(next((line.partition(":")[2] for line in lines if line.startswith("flags")), "").split())
    except OSError:
        return frozenset()

"""Multiply instructions of this processor: CPU engines choose their int8 kernels by them."""

import functools
import platform
from pathlib import Path

_EXACT = frozenset({"avx512_vnni", "avx_vnni", "avx_vnni_int8", "amx_int8"})
"""Flags of instructions that sum products of 8-bit numbers in int32 (Intel 64 manual, VPDPBUSD, TDPBUSD)."""


@functools.cache
def sums_in_int16(flags: frozenset[str] | None = None) -> bool:
    """Return whether int8 kernels here must add pairs of products in saturating int16 (VPMADDUBSW), as far as is known.

    ONNX Runtime and OpenVINO do so on x86 without VNNI. False elsewhere, and where the system lists no flags.

    Args:
        flags: Flags of a processor; None for this machine's, as Linux lists them.
    """
    if flags is None:
        flags = _flags()
    return bool({"ssse3", "avx2"} & flags) and not flags & _EXACT


def _flags() -> frozenset[str]:
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return frozenset()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return frozenset()
    return frozenset(next((line.partition(":")[2] for line in lines if line.startswith("flags")), "").split())

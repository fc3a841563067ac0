"""Does a model fit? The available memory, the engines' share of it, and how much of a model may be held at a time.

An engine maps the file of a model's weights, which costs no memory that could not be given back, and holds them once
more in the layout of its kernels; two engines do so at a time, and a diagnosis evaluates the model in float64 as well.
"""

from pathlib import Path

from tensortriage.engines.process.control_group import group_memory

HELD_WHOLE = 3
"""Memory that a comparison takes, in sizes of the weights: two engines with a copy each, and room for one of them to
build; measured with ONNX Runtime 1.31 and OpenVINO 2026.4 (bench/beyond_memory.py)."""
HELD_OF_BLOCK = 10
"""The same of a block, which is evaluated in float64 too, when it is looked into: 8 of a transformer
(bench/beyond_memory.py), 9 of seven 3x3 convolutions of 512 channels."""
BASE_BYTES = 128 << 20
"""Memory of the process without any model: Python, numpy, onnx and two engines; measured likewise."""
LOOKING_BYTES = 224 << 20
"""Memory of a process that has looked into a block, whatever that held: witnesses have been loaded by then."""
_LEAST_SHARE = 4
"""At least one part in so many of the limit is for the model, however small the limit is."""
_MEMINFO = Path("/proc/meminfo")


def memory_bytes(limit: int | None) -> int | None:
    """Return the memory that may be used: the limit given, else what is left here; None when unknown.

    That is the machine's free memory or, where control groups bound this process, their remainder.
    """
    if limit is not None:
        return limit
    group = group_memory()
    known = (_available(), None if group is None else group.left)
    return min((size for size in known if size is not None), default=None)


def fits(weight_bytes: int, memory: int | None) -> bool:
    """Return whether a model with so many weights can be compared as a whole."""
    return memory is None or weight_bytes * HELD_WHOLE <= _room(memory)


def whole_bytes(weight_bytes: int) -> int:
    """Return the memory in which a model with so many weights can be compared as a whole."""
    return weight_bytes * HELD_WHOLE + BASE_BYTES


def block_bytes(memory: int) -> int:
    """Return the most weights that a block may have."""
    return _room(memory, LOOKING_BYTES) // HELD_OF_BLOCK


def _room(memory: int, base: int = BASE_BYTES) -> int:
    return max(memory - base, memory // _LEAST_SHARE)


def _available() -> int | None:
    """Return the bytes of memory available without swapping (proc(5), MemAvailable)."""
    try:
        lines = _MEMINFO.read_text().splitlines()
    except OSError:
        return None
    found = [int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")]
    return found[0] if found else None

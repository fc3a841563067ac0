"""Numbers and long names made short for people's eyes, and the sizes that people write."""

import math
import re
from collections.abc import Sequence

from tensortriage.errors import UsageError

_ELLIPSIS = "…"


def shorten(text: str, width: int) -> str:
    """Return ``text`` cut in the middle to at most ``width`` characters.

    Both ends stay: exporters put the module path first and the op last, and a reader needs both.

    Example:
        >>> shorten("encoder.layer.11.attention.Softmax", 16)
        'encoder….Softmax'
    """
    if len(text) <= width:
        return text
    if width <= 1:
        return _ELLIPSIS[:width]
    tail = width // 2
    return text[: width - tail - 1] + _ELLIPSIS + text[len(text) - tail :]


def magnitude(value: float | None) -> str:
    """Return a number with three significant digits; ``-`` when it was not measured.

    Example:
        >>> magnitude(0.000012345)
        '1.23e-05'
    """
    if value is None:
        return "-"
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Inf" if value > 0 else "-Inf"
    if value != 0 and 1e4 <= abs(value) < 1e7:
        return f"{value:.0f}"
    return f"{value:.3g}"


def times(value: float | None) -> str:
    """Return a ratio as ``310x``; ``-`` when it was not measured."""
    return "-" if value is None else magnitude(value) + ("x" if math.isfinite(value) else "")


def decibel(value: float | None) -> str:
    """Return a level in dB with one decimal, without unit; ``exact`` for an infinite signal-to-noise ratio."""
    if value is None:
        return "-"
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "exact" if value > 0 else "-Inf"
    return f"{value:.1f}"


def percent(share: float | None) -> str:
    """Return a share of 1 in percent; never ``100 %`` or ``0 %`` for what is only close to it."""
    if share is None or math.isnan(share):
        return "-"
    if 0 < share < 0.01:
        return "< 1 %"
    if 0.99 < share < 1:
        return "> 99 %"
    return f"{share * 100:.0f} %"


def duration(seconds: float) -> str:
    """Return a wall time, e.g. ``0.4 s``, ``12 s``, ``3 min 20 s``, ``2 h 5 min``."""
    if not math.isfinite(seconds):
        return "-"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def count(number: int, noun: str) -> str:
    """Return ``1 check``, ``3 checks``, ``12,345 nodes``."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def enumeration(words: Sequence[str]) -> str:
    """Return words as a list in a sentence: ``a``, ``a and b``, ``a, b and c``; empty without any."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def some(names: Sequence[str], most: int) -> str:
    """Return the first names, and how many there are besides: ``a, b and 7 more``."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def shape(dims: tuple[int, ...]) -> str:
    """Return a shape as ``[1, 128, 384]``; ``scalar`` without dimensions."""
    return "[" + ", ".join(map(str, dims)) + "]" if dims else "scalar"


def whole_number(text: str) -> int | None:
    """Return the number that at most 18 ASCII digits write; None for any other text.

    What `str.isdigit` accepts, `int` may not: ``²``, or more digits than Python converts.
    """
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


def size(nbytes: int) -> str:
    """Return a size in bytes, e.g. ``512 B``, ``14.2 kB``, ``498 MB``, ``3.22 GB`` (powers of ten)."""
    number = float(nbytes)
    for unit in ("B", "kB", "MB", "GB"):
        if number < 999.5:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} TB"


def parse_bytes(text: str) -> int | None:
    """Return a byte count: ``512``, ``1.5G``, ``300M``, ``1e9``; None for an empty text.

    Raises:
        UsageError: For anything else.
    """
    if not text:
        return None
    match = re.fullmatch(r"([\d.]+(?:[eE][+-]?\d+)?)\s*([KMGT]?)i?B?", text.strip(), re.IGNORECASE)
    try:
        number = float(match[1]) if match else -1.0
    except ValueError:
        number = -1.0
    if match is None or number <= 0 or not math.isfinite(number):
        raise UsageError(f"'{text}' is not a size in bytes", slug="size-malformed", cure="write e.g. 512M or 8G")
    return int(number * {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}[match[2].upper()])

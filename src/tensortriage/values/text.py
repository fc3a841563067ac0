"""Numbers and long names made short for people's eyes, and the sizes that people write.

Every number that a person reads is written here, so that one screen, page or file never shows a figure in two ways.
"""

import math
import re
from collections.abc import Sequence

from tensortriage.errors import UsageError

_ELLIPSIS = "…"
_CLAUSES = re.compile(r"(?<=; )(?![^()]*\))|(?<=\. )(?=[A-Z])")
"""Where a clause of a sentence begins that stands in no parentheses."""
_REST = "(more in the report)"


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


def abridged(text: str, width: int) -> str:
    """Return a sentence whole, or of more than ``width`` characters the first clauses and those that name a cure.

    A clause that is longer by itself is cut in the middle, for names are long in it.

    Example:
        >>> abridged("Mul is wrong; it is off by 3 % on all feeds; it is one of 4. Cure: take Div", 56)
        'Mul is wrong; Cure: take Div (more in the report)'
    """
    if len(text) <= width:
        return text
    clauses = [shorten(clause, width // 2) for clause in _CLAUSES.split(shorten(text, 4 * width))]
    cures = [clause for clause in clauses[1:] if clause.lower().startswith("cure:")][:1]
    left = width - len(_REST) - sum(map(len, cures))
    kept = []
    for clause in clauses:
        if clause in cures or (left := left - len(clause)) < 0:
            break
        kept.append(clause)
    return "".join([*kept, *cures]).rstrip("; ") + f" {_REST}"


def magnitude(value: float | None, digits: int = 3) -> str:
    """Return a number with so many significant digits; ``-`` when it was not measured.

    Whole digits are never dropped below a million, so that 65,519 stays above the 65,504 at which fp16 ends.

    Example:
        >>> magnitude(0.000012345), magnitude(0.0312), magnitude(65519.0), magnitude(4.234e6)
        ('1.23e-05', '0.0312', '65,519', '4.23 million')
    """
    if value is None:
        return "-"
    value = float(value)  # of numpy's, which have formats of their own
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Inf" if value > 0 else "-Inf"
    size = abs(float(f"{value:.{digits}g}"))
    if 1e6 <= size < 1e12:
        unit, word = (1e6, "million") if size < 1e9 else (1e9, "billion")
        return f"{float(f'{value / unit:.{digits}g}'):g} {word}"
    return f"{value:,.0f}" if 10.0 ** min(digits, 6) <= size < 1e6 else f"{value:,.{digits}g}"


def times(value: float | None) -> str:
    """Return a ratio; one of thousands with two digits, for no floor is known better. ``-`` when it was not measured.

    Example:
        >>> times(1.0312), times(9550.0), times(4.23e6)
        ('1.03x', '9,600x', '4.2 million x')
    """
    if value is None or not math.isfinite(value):
        return magnitude(value)
    if abs(value) < 999.5:
        return f"{magnitude(value)}x"
    text = magnitude(float(f"{value:.2g}"), 2)
    return f"{text} x" if text.endswith("illion") else f"{text}x"


def over_floor(ratio: float | None) -> str:
    """Return error over noise floor for a sentence; a floor of zero, or an infinite error, has no ratio.

    Example:
        >>> over_floor(12.345), over_floor(float("inf"))
        ('12.3x the difference between healthy engines', 'more than the difference between healthy engines')
    """
    if ratio is None or not math.isfinite(ratio):
        return "more than the difference between healthy engines"
    return f"{times(ratio)} the difference between healthy engines"


def error_size(error: float | None) -> str:
    """Return a relative error for a sentence: in percent where that is read at a glance, else as a power of ten.

    Example:
        >>> error_size(0.0301), error_size(0.0071), error_size(3.1e-4), error_size(42.0), error_size(float("inf"))
        ('3 %', '0.71 %', '3.1e-04', '42x', 'NaN or Inf')
    """
    if error is None:
        return "not measured"
    if not math.isfinite(error):
        return "NaN or Inf"
    if error == 0.0:
        return "0"
    if error < 9.95e-4:
        return f"{error:.1e}"
    return percent(error) if error < 9.95 else times(error)


def noise_size(floor: float) -> str:
    """Return by how much of an output healthy engines differ: beyond all of it, the number says nothing.

    Example:
        >>> noise_size(0.4), noise_size(532.0), noise_size(float("nan"))
        ('40 %', 'more than all', 'more than all')
    """
    return error_size(floor) if floor < 1.0 else "more than all"


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
    """Return a share of 1 in percent; never ``100 %`` or ``0 %`` for shares that are only close to it.

    Example:
        >>> percent(0.031), percent(0.0071), percent(1e-6), percent(0.9999), percent(1.0)
        ('3 %', '0.71 %', '< 0.01 %', '> 99 %', '100 %')
    """
    if share is None or math.isnan(share):
        return "-"
    if math.isinf(share):
        return magnitude(share)
    if 0.0 < share < 0.00995:
        return f"{share * 100:.2g} %" if share >= 1e-4 else "< 0.01 %"
    if 0.99 < share < 1.0:
        return "> 99 %"
    return f"{share * 100:,.0f} %"


def duration(seconds: float) -> str:
    """Return a wall time, e.g. ``0.4 s``, ``12 s``, ``3 min 20 s``, ``2 h 5 min``."""
    if not math.isfinite(seconds):
        return "-"
    if seconds < 9.95:
        return f"{max(seconds, 0.0):.1f} s"
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

    `str.isdigit` accepts more than `int` does: ``²``, or more digits than Python converts.
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


def larger_limit(limit_bytes: int) -> str:
    """Return the memory limit to try after one that was reached, as options take it: twice as much."""
    return f"{2 * limit_bytes >> 20}M"


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

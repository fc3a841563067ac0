"""Names made safe for people's eyes.

Names come from model files, which nobody has vetted: a name may hold terminal escape sequences, line breaks or
characters that reverse the reading direction. Every renderer shows names through `printable`, so that a reader sees the
file's contents, and nothing in it can act.
"""

import unicodedata

_UNSAFE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str) -> str:
    r"""Return ``text`` with control, format, surrogate and line-separator characters written as escapes.

    Example:
        >>> printable("a\x1b[2Jb\n")
        'a\\x1b[2Jb\\n'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escaped(c) if unicodedata.category(c) in _UNSAFE_CATEGORIES else c for c in text)


def _escaped(character: str) -> str:
    code = ord(character)
    if character in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[character]
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"

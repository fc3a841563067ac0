"""JSON that is looked at without being parsed: a view is a span of a memory-mapped file.

Saved tensors in JSON are megabytes of base64 in a few dozen keys. Parsing such a file whole takes several times its
size in memory; walking it from key to key takes none, because a string is skipped by searching for its closing quote
and only the requested values are ever decoded.
"""

import json
import mmap
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tensortriage.errors import DataError
from tensortriage.values.files import open_regular

_SPACE = re.compile(rb"[ \t\r\n]*")
_STRUCTURE = re.compile(rb'["{}\[\]]')
_SCALAR = re.compile(rb"[-+.0-9A-Za-z]+")
_QUOTE, _BACKSLASH, _COMMA, _COLON, _END_OF_LIST, _END_OF_OBJECT = b'"\\,:]}'
_OPENING = frozenset(b"{[")


def open_json(path: Path) -> "View":
    """Map a JSON file and return a view of its top value.

    Raises:
        DataError: When it is empty or its brackets and quotes do not match (``json-invalid``).
        OSError: When it cannot be read.
    """
    with open_regular(path) as file:
        try:
            text = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:
            raise _invalid(path, 0, "the file is empty") from None
    start = 3 if text[:3] == b"\xef\xbb\xbf" else 0
    start = _skip_space(text, start)
    view = View(text, start, path)
    if _skip_space(text, view.end) != len(text):
        raise _invalid(path, view.end, "text after the end of the document")
    return view


class View:
    """One JSON value of a document, not yet parsed.

    Args:
        text: The whole document.
        start: Offset of the value's first character.
        path: The file, for messages.
    """

    __slots__ = ("_end", "_path", "_start", "_text")

    def __init__(self, text: mmap.mmap, start: int, path: Path) -> None:
        self._text = text
        self._start = start
        self._path = path
        self._end = -1

    @property
    def end(self) -> int:
        """Offset just behind the value."""
        if self._end < 0:
            self._end = self._skip_value(self._start)
        return self._end

    @property
    def is_object(self) -> bool:
        """Whether the value is a JSON object."""
        return self._text[self._start : self._start + 1] == b"{"

    @property
    def is_list(self) -> bool:
        """Whether the value is a JSON list."""
        return self._text[self._start : self._start + 1] == b"["

    @property
    def is_string(self) -> bool:
        """Whether the value is a JSON string."""
        return self._text[self._start : self._start + 1] == b'"'

    def fields(self) -> dict[str, "View"]:
        """Return the members of an object, in order; of repeated keys the last wins, as in Python's json.

        Raises:
            DataError: When it is no object, or a damaged one (``json-invalid``).
        """
        if not self.is_object:
            raise self.invalid("an object was expected")
        found: dict[str, View] = {}
        position = _skip_space(self._text, self._start + 1)
        while self._byte(position) != _END_OF_OBJECT:
            key = View(self._text, position, self._path)
            if not key.is_string:
                raise key.invalid("a key was expected")
            colon = _skip_space(self._text, key.end)
            if self._byte(colon) != _COLON:
                raise _invalid(self._path, colon, "':' was expected")
            value = View(self._text, _skip_space(self._text, colon + 1), self._path)
            found[str(key.value())] = value
            position = self._after(value.end, _END_OF_OBJECT)
        self._end = position + 1
        return found

    def elements(self) -> Iterator["View"]:
        """Yield the elements of a list.

        Raises:
            DataError: When it is no list, or a damaged one (``json-invalid``).
        """
        if not self.is_list:
            raise self.invalid("a list was expected")
        position = _skip_space(self._text, self._start + 1)
        while self._byte(position) != _END_OF_LIST:
            element = View(self._text, position, self._path)
            yield element
            position = self._after(element.end, _END_OF_LIST)

    def value(self) -> Any:
        """Parse the value; bare NaN and Infinity are accepted.

        Raises:
            DataError: When it is not JSON (``json-invalid``).
        """
        try:
            return json.loads(self._text[self._start : self.end])
        except (ValueError, RecursionError) as error:
            raise self.invalid(str(error)) from error

    def text(self) -> bytes:
        """Return the characters of a string as in the file, escapes not resolved.

        Raises:
            DataError: When it is no string (``json-invalid``).
        """
        if not self.is_string:
            raise self.invalid("a string was expected")
        return self._text[self._start + 1 : self.end - 1]

    def invalid(self, reason: str) -> DataError:
        """Return an error about this value, with its place."""
        return _invalid(self._path, self._start, reason)

    def _byte(self, position: int) -> int:
        if position >= len(self._text):
            raise _invalid(self._path, position, "the document ends early")
        return self._text[position]

    def _after(self, position: int, end: int) -> int:
        """Return the position of the next member, or of the closing bracket."""
        position = _skip_space(self._text, position)
        byte = self._byte(position)
        if byte == end:
            return position
        if byte != _COMMA:
            raise _invalid(self._path, position, f"',' or '{chr(end)}' was expected")
        position = _skip_space(self._text, position + 1)
        if self._byte(position) == end:
            raise _invalid(self._path, position, "a value was expected")
        return position

    def _skip_value(self, position: int) -> int:
        byte = self._byte(position)
        if byte == _QUOTE:
            return self._skip_string(position)
        if byte not in _OPENING:
            match = _SCALAR.match(self._text, position)
            if match is None:
                raise _invalid(self._path, position, "a value was expected")
            return match.end()
        depth = 0
        while True:
            match = _STRUCTURE.search(self._text, position)
            if match is None:
                raise _invalid(self._path, len(self._text), "the document ends early")
            position = match.start()
            byte = self._text[position]
            if byte == _QUOTE:
                position = self._skip_string(position)
                continue
            position += 1
            depth += 1 if byte in _OPENING else -1
            if depth == 0:
                return position

    def _skip_string(self, position: int) -> int:
        start = position
        while True:
            position = self._text.find(b'"', position + 1)
            if position < 0:
                raise _invalid(self._path, start, "unterminated string")
            before = position - 1
            while self._text[before] == _BACKSLASH:
                before -= 1
            if (position - before) % 2 == 1:  # An even number of backslashes: none of them escapes the quote.
                return position + 1


def _skip_space(text: mmap.mmap, position: int) -> int:
    match = _SPACE.match(text, position)
    assert match is not None
    return match.end()


def _invalid(path: Path, offset: int, reason: str) -> DataError:
    return DataError(
        f"{path} is not whole JSON: {reason} (at byte {offset})",
        slug="json-invalid",
        cure="save the file again; it may be truncated",
    )

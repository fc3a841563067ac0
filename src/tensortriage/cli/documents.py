"""Documents on standard output: UTF-8 whatever the locale says, because a file format has one encoding."""

import sys


def print_document(text: str, *, err: bool = False) -> None:
    """Write a document; lone surrogates, which UTF-8 cannot hold, as escapes (in JSON the same string).

    Args:
        text: The document.
        err: Write to stderr.
    """
    stream = sys.stderr if err else sys.stdout
    stream.flush()
    stream.buffer.write((text.removesuffix("\n") + "\n").encode("utf-8", errors="backslashreplace"))
    stream.flush()

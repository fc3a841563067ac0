"""Names from a model, made safe to show: they are data from a stranger and may hold anything."""

_LONGEST = 120


def quoted(name: object) -> str:
    """Return a name in quotes on one line: control characters escaped, the middle of a very long name left out."""
    text = repr(name)
    if len(text) <= _LONGEST:
        return text
    return f"{text[: _LONGEST // 2]}...{text[-_LONGEST // 2 :]} ({len(text) - 2} characters)"


def first_cause(error: BaseException) -> BaseException:
    """Return the exception that a chain of them began with."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def first_line(error: BaseException) -> str:
    """Return the text of a foreign exception, or of its first cause: one short line; its type if there is no text."""
    error = first_cause(error)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else type(error).__name__
    shown = "".join(char if char.isprintable() else "?" for char in text)
    return shown if len(shown) <= 3 * _LONGEST else shown[: 3 * _LONGEST] + "..."

"""Given files that come in pairs, of one name and two endings: a network and its weights."""

from pathlib import Path

from tensortriage.engines.sdk import UsageError


def beside(path: str, ending: str) -> str:
    """Return the path of the file that belongs to a given one: of the same name but for the ending.

    Raises:
        UsageError: When there is none (``engine-option-file``).
    """
    found = Path(path).with_suffix(ending)
    if not found.is_file():
        cure = f"put the {ending} next to the {Path(path).suffix} file"
        raise UsageError(f"{found} does not exist", slug="engine-option-file", cure=cure)
    return str(found)

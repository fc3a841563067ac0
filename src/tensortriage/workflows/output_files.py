"""Files that a command is to write at its end, looked at before hours of work are spent on them."""

from pathlib import Path

from tensortriage.errors import UsageError


def check_output(path: Path | None, *inputs: Path | None) -> None:
    """Refuse a file that cannot or must not be written.

    Args:
        path: File to write; None for none.
        inputs: Models that are read, and that commands printed at the end still name.

    Raises:
        UsageError: When the path is a directory (``output-is-directory``) or one of the inputs (``output-is-input``).
    """
    if path is None:
        return
    if path.is_dir():
        raise UsageError(f"{path} is a directory", slug="output-is-directory", cure="name a file, e.g. -o edited.onnx")
    if path.exists() and any(one is not None and one.exists() and path.samefile(one) for one in inputs):
        raise UsageError(
            f"{path} is the model under study and would be overwritten",
            slug="output-is-input",
            cure="name another file",
        )

"""Tactics for a build: files of other tools are put into the words that an adapter takes back."""

from pathlib import Path

from tensortriage.engines.spec import EngineSpec

OPTION = "load_tactics"


def with_tactics(spec: EngineSpec, folder: Path) -> EngineSpec:
    """Return an engine whose option ``load_tactics`` names a file of ours, whatever kind of file it named.

    Args:
        spec: The engine.
        folder: The folder of that file.

    Raises:
        DataError: When the file holds no tactics (``tactics-unreadable``).
    """
    if spec.name != "tensorrt" or OPTION not in spec.options:
        return spec
    from tensortriage.runs.analyses.tactics import load_record, save_record  # with the readers of other tools' files

    path = folder / "tactics.json"
    save_record(load_record(Path(spec.options[OPTION])), path)
    return spec.with_options({**spec.options, OPTION: str(path)})

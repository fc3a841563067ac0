"""Plugins in models: where their patterns match, the file that says so, and the model with their nodes in it."""

import importlib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tensortriage.errors import DataError, UsageError
from tensortriage.model.plugin_patterns import (
    INSTALL,
    PATTERN_FILE,
    PluginMatch,
    matches,
    patterns,
    replace,
)
from tensortriage.model.shape_inference.annotate import with_inferred_shapes
from tensortriage.values.files import read_regular
from tensortriage.workflows.edits.edit_pipeline import SurgeryResult, load, written
from tensortriage.workflows.edits.requests import Source, Target
from tensortriage.workflows.edits.verify_edit import EditStage, Proof


def find_matches(
    source: Source, folder: Path, *, include: Collection[str], exclude: Collection[str], infer_shapes: bool = False
) -> dict[str, PluginMatch | None]:
    """Return what each plugin of a directory matches in a model, by the plugin's name; None where it is nothing.

    Args:
        source: The model.
        folder: Has one directory for each plugin.
        include: The only plugins to ask; empty for all.
        exclude: Plugins to leave out.
        infer_shapes: Whether patterns see inferred shapes.

    Raises:
        TriageError: For whatever is wrong with the model, the directory or a pattern.
    """
    asked = patterns(folder, include=include, exclude=exclude)
    model = source.load()
    if infer_shapes:
        model = with_inferred_shapes(model)
    return {name: matches(model, path) for name, path in asked.items()}


def write_matches(path: Path, found: Sequence[PluginMatch]) -> None:
    """Write matches as Polygraphy does: a YAML document for each plugin."""
    documents = [msgspec.to_builtins(match) for match in found]
    path.write_text(_yaml().safe_dump_all(documents, default_flow_style=False, sort_keys=False), encoding="utf-8")


def read_matches(path: Path) -> list[PluginMatch]:
    """Read what `write_matches`, or Polygraphy, wrote.

    Raises:
        DataError: When the file cannot be read or holds something else (``matches-unreadable``).
    """
    yaml = _yaml()
    try:
        documents = list(yaml.safe_load_all(read_regular(path).decode("utf-8")))
        return [msgspec.convert(document, PluginMatch) for document in documents]
    except (OSError, UnicodeDecodeError, yaml.YAMLError, msgspec.ValidationError) as error:
        raise DataError(
            f"{path} is not a file of matches: {error}",
            slug="matches-unreadable",
            cure="give a file that 'triage plugin match' wrote",
        ) from error


def replace_matches(
    source: Source, target: Target, folder: Path, found: Sequence[PluginMatch], *, infer_shapes: bool = False
) -> SurgeryResult:
    """Put nodes of plugins where they match, and write the model.

    Raises:
        TriageError: For whatever is wrong; nothing is written then.
    """
    stages = [EditStage("load", load(source, target))]
    if infer_shapes:
        stages.append(EditStage("shape-inference", with_inferred_shapes(stages[-1].model)))
    for match in found:
        changed = replace(stages[-1].model, match, folder / match.name / PATTERN_FILE)
        stages.append(EditStage(f"{match.name} x {len(match.instances)}", changed))
    return written("plugin replace", source, target, stages, Proof(False, "only TensorRT can run a plugin"))


def _yaml() -> Any:
    try:
        return importlib.import_module("yaml")
    except ImportError as error:
        raise UsageError(
            "files of matches are YAML, and PyYAML is not installed", slug="yaml-missing", cure=INSTALL
        ) from error

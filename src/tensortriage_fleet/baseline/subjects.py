"""Which models, with which data, on which targets: from the user, from files next to a model, from a baseline."""

import dataclasses
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from tensortriage.api import EngineSpec
from tensortriage.sdk import UsageError
from tensortriage_fleet.baseline.baseline_file import Baseline, BaselineFolder
from tensortriage_fleet.baseline.request import BaselineRequest

MODEL = ".onnx"
DATA = (".npz", ".safetensors", ".json")
"""Endings of a model's data next to it."""
DATA_SETS = "test_data_set_*"
"""Folders of data next to a model that is alone in its own, as ONNX's model zoo has it."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)  # it is itself, not what is equal: a key
class BaselineSubject:
    """A model on a target.

    Attributes:
        model: The model: its path from the root of the baselines, or a name of its own.
        path: Its file.
        target: The engine, as it is run.
        key: The target of the baseline that it is compared with, or under which it is saved.
        inputs: Files of its data, from the root; none where they are made up.
        saved: The model's baselines; None for none.
    """

    model: str
    path: str
    target: str
    key: str
    inputs: tuple[str, ...]
    saved: Baseline | None = None

    @property
    def is_new(self) -> bool:
        """Whether there is no baseline for it."""
        return self.saved is None or self.key not in self.saved.targets


def subjects(request: BaselineRequest, folder: BaselineFolder, *, saving: bool) -> list[BaselineSubject]:
    """Return the subjects of a command.

    Args:
        request: The command.
        folder: The baselines.
        saving: Whether targets are saved under their own names; else one is compared with a baseline of its engine.

    Raises:
        UsageError: When there is no model (``baseline-empty``) or no target (``target-missing``), or a model lies
            elsewhere (``baseline-outside``).
    """
    models = [request.name] if request.name else list(dict.fromkeys(_models(request, folder)))
    if not models:
        raise UsageError(
            f"there is no baseline in {folder.folder}" if not request.paths else "there is no model in the given paths",
            slug="baseline-empty",
            cure="triage baseline save FOLDER_OR_FILES --targets ENGINE",
        )
    baselines = {model: folder.read(model) for model in models}
    targets = tuple(_from_root(target, folder.root) for target in request.targets)
    usual = targets or tuple(dict.fromkeys(key for saved in baselines.values() if saved for key in saved.targets))
    if not usual:
        raise UsageError("no --targets: which engines?", slug="target-missing", cure="e.g. --targets onnxruntime")
    given = tuple(_word_from_root(word, folder.root) for word in request.inputs)
    found = []
    for model, saved in baselines.items():
        known = saved.targets if saved else {}
        path = str(request.paths[0].absolute()) if request.name else model
        inputs = given or (saved.data.inputs if saved else _beside(folder.root, path))
        for target in targets or known or usual:
            key = without_worker(target)
            found.append(
                BaselineSubject(model, path, target, key if saving else _held_against(key, known), inputs, saved)
            )
    return found


def without_worker(target: str) -> str:
    """Return the spec of an engine wherever it runs."""
    spec = EngineSpec.parse(target)
    return str(spec.with_options({name: word for name, word in spec.options.items() if name != "worker"}))


def _held_against(key: str, known: Iterable[str]) -> str:
    """Return the baseline of a target: that with most of its options and no others, else the only one of its engine."""
    wanted = EngineSpec.parse(key)
    alike = {other: spec for other in known if (spec := EngineSpec.parse(other)).name == wanted.name}
    among = [other for other, spec in alike.items() if spec.options.items() <= wanted.options.items()]
    if among:
        return max(among, key=lambda other: len(alike[other].options))
    return next(iter(alike)) if len(alike) == 1 else key


def _models(request: BaselineRequest, folder: BaselineFolder) -> Iterator[str]:
    if not request.paths:
        saved = {model: folder.read(model) for model in folder.models()}
        yield from (model for model, kept in saved.items() if kept is not None and kept.model.path)
    for path in request.paths:
        if not path.is_dir():
            yield folder.relative(path)
            continue
        below = folder.relative(path)
        ours = (folder.folder.resolve(), request.case.resolve())
        files = sorted(file for file in path.rglob(f"*{MODEL}") if not {*file.resolve().parents} & {*ours})
        yield from map(folder.relative, files)
        yield from (model for model in folder.models() if below in (".", *map(str, Path(model).parents)))


def _beside(root: Path, model: str) -> tuple[str, ...]:
    path = root / model
    for ending in DATA:
        if path.with_suffix(ending).is_file():
            return (Path(model).with_suffix(ending).as_posix(),)
    if len(list(path.parent.glob(f"*{MODEL}"))) > 1:
        return ()
    return tuple((Path(model).parent / found.name).as_posix() for found in sorted(path.parent.glob(DATA_SETS)))


def _from_root(target: str, root: Path) -> str:
    """Return a spec whose file, if it has one, is relative to the root."""
    spec = EngineSpec.parse(target)
    file = spec.options.get("file", "")
    if not file:
        return target
    return str(spec.with_options({**spec.options, "file": _word_from_root(file, root)}))


def _word_from_root(word: str, root: Path) -> str:
    """Return a word that names a file, alone or with a function behind a colon, as one from the root."""
    name, colon, rest = word.partition(":") if not Path(word).exists() else (word, "", "")
    path = Path(name)
    if not name or not path.exists() or (path.is_absolute() and not path.is_relative_to(root)):
        return word
    return Path(os.path.relpath(path, root)).as_posix() + colon + rest

"""Saving feeds and outputs of a comparison while it continues, and reading saved outputs back as participants.

Outputs wait in a temporary tensor store, so that no more than one feed's are in memory; files are written at the end,
in the format that their name implies.
"""

import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

import numpy as np

from tensortriage.errors import DataError
from tensortriage.inputs.feed import Feed
from tensortriage.inputs.files.data_file import Iteration, Kind
from tensortriage.inputs.files.open_data import open_data
from tensortriage.inputs.files.save_data import save
from tensortriage.values.store import MappedStore, ShardWriter
from tensortriage.workflows.comparison.participants import Saved
from tensortriage_worker.function_adapter import as_array


class Recorder:
    """Keeps feeds and outputs until they are saved.

    Args:
        folder: Temporary directory.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._feeds: list[Path] = []
        self._outputs: dict[str, list[Path]] = {}

    def feed(self, number: int, feed: Feed) -> None:
        """Keep a feed."""
        self._feeds.append(self._store(f"feed-{number}", feed.tensors))

    def outputs(self, participant: str, number: int, outputs: Mapping[str, np.ndarray]) -> None:
        """Keep the outputs of one participant on one feed."""
        place = list(self._outputs).index(participant) if participant in self._outputs else len(self._outputs)
        kept = self._outputs.setdefault(participant, [])
        kept.append(self._store(f"outputs-{place}-{number}-{len(kept)}", outputs))

    def _store(self, name: str, tensors: Mapping[str, np.ndarray]) -> Path:
        folder = self._folder / name
        with ShardWriter(folder) as writer:
            for key, array in tensors.items():
                writer.write(key, array)
        return folder

    def save_inputs(self, path: Path) -> None:
        """Write the feeds."""
        save(path, [("", iterations(self._feeds))], kind=Kind.INPUTS)

    def save_blobs(self, folder: Path) -> None:
        """Write every input of every feed as raw bytes, ``FOLDER/NUMBER/INPUT.bin``, as Polygraphy does."""
        for number, iteration in enumerate(iterations(self._feeds)):
            place = folder / f"{number:010d}"
            place.mkdir(parents=True, exist_ok=True)
            for name, array in iteration.tensors.items():
                array.tofile(place / f"{quote(name, safe=' ()[]{}@:+=,;')}.bin")

    def save_outputs(
        self, path: Path, names: Mapping[str, str] | None = None, *, without: Collection[str] = ()
    ) -> None:
        """Write the outputs of every participant, perhaps under other names and in the order of these.

        Args:
            path: The file to write.
            names: How participants are called in the file.
            without: Participants to leave out.
        """
        order = [name for name in names or {} if name in self._outputs]
        order += [name for name in self._outputs if name not in order]
        order = [name for name in order if name not in without]
        series = [((names or {}).get(name, name), iterations(self._outputs[name])) for name in order]
        save(path, series, kind=Kind.OUTPUTS)


def iterations(folders: list[Path]) -> Iterator[Iteration]:
    """Yield kept tensors, reading each when it is looked at."""
    for folder in folders:
        store = MappedStore(folder)
        yield Iteration({name: np.asarray(store[name]) for name in store.names()})


def load_every(paths: Sequence[Path]) -> list[Saved]:
    """Return the participants of files of saved outputs; one that occurs again has ``#2`` and so on behind its name.

    Raises:
        DataError: When a file is unreadable or holds inputs.
    """
    found, seen = [saved for path in paths for saved in load_saved(path)], Counter[str]()
    for saved in found:
        seen[saved.name] += 1
        if seen[saved.name] > 1:
            saved.name += f" #{seen[saved.name]}"
    return found


def given_results(name: str, given: object) -> Saved:
    """Return outputs that were given in Python as a participant.

    Args:
        name: Its name.
        given: A dict from name to array, a list of such dicts, one for each feed, or a file of one participant.

    Raises:
        TypeError: For anything else.
        DataError: As `load_saved`.
    """
    if isinstance(given, (str, os.PathLike)):
        saved = next(load_saved(Path(given)))
        saved.name = name
        return saved
    results = given if isinstance(given, (list, tuple)) else [given]
    found = [each for each in results if isinstance(each, Mapping)]
    if not results or len(found) < len(results):
        what = f"{name} outputs cannot be a {type(given).__name__}"
        raise TypeError(f"{what}: give a dict from name to array, a list of such dicts, or a file")
    return Saved(name, [{key: as_array(value) for key, value in each.items()} for each in found])


def load_saved(path: Path) -> Iterator[Saved]:
    """Yield the participants of a file of saved outputs.

    Raises:
        DataError: When it is unreadable or holds inputs.
    """
    file = open_data(path)
    if file.kind is Kind.INPUTS and any(series.runner for series in file.series):
        raise DataError(f"{path} holds inputs, not outputs", slug="results-are-inputs", cure="give --load-inputs")
    for series in file.series:
        name = f"{series.runner} in {path.name}" if series.runner else path.name
        yield Saved(name, [iteration.tensors for iteration in series])

"""The content key of a cell's ending: a finished cell is run again only when it changes.

The files that its words name count by their content, the model by structure and weights, engines by the version and the
device that they report. A cell's expectation does not count: it is judged anew each time.
"""

import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from tensortriage.api import DiagnoseRequest, EngineSpec, Model, TriageError
from tensortriage.sdk import digest, file_digests, resolved_engine, versions
from tensortriage_fleet.batch.cells import Cell

MOST_FILES = 10_000
"""Files of a folder that a word names, at most; a folder with more is no feed."""
_SPLIT = re.compile(r"[=:,]")
_ENGINES = ("--target", "--reference", "--against", "-t", "-r")


class CellKeys:
    """Makes the keys of the cells of one batch; files, models and engines are looked at once.

    Args:
        place: Folder of the batch file.
    """

    def __init__(self, place: Path) -> None:
        self._place = place
        self._models: dict[str, str] = {}
        self._engines: dict[str, str] = {}
        self._files: dict[str, str] = {}
        self._versions = versions()
        self._reference = DiagnoseRequest(model=place, target="").reference  # where none is named

    def key(self, cell: Cell, words: tuple[str, ...], model: str) -> str:
        """Return the key of a cell.

        Args:
            cell: The cell.
            words: Command line of the cell.
            model: Model file of the cell, as the batch file names it.
        """
        return digest(
            cell.name, words, self._model(model), self._engines_of(cell, words), self._named(words), self._versions
        )

    def _model(self, name: str) -> str:
        if name not in self._models:
            path = self._place / name
            try:
                self._models[name] = Model.load(path).fingerprint
            except TriageError:  # the cell will report the problem
                self._models[name] = repr(file_digests([str(path)]))
        return self._models[name]

    def _engines_of(self, cell: Cell, words: tuple[str, ...]) -> list[str]:
        named = [after for word, after in itertools.pairwise(words) if word in _ENGINES]
        named += [self._reference] if cell.crossing.reference and not {"--reference", "-r"} & {*words} else []
        return [self._engine(spec) for spec in named]

    def _engine(self, text: str) -> str:
        if text not in self._engines:
            try:
                spec = EngineSpec.parse(text)
                if "file" in spec.options:
                    spec = spec.with_options({**spec.options, "file": str(self._place / spec.options["file"])})
                self._engines[text] = resolved_engine(spec).identity
            except TriageError:  # likewise
                self._engines[text] = "unknown"
        return self._engines[text]

    def _named(self, words: tuple[str, ...]) -> Mapping[str, str]:
        names = dict.fromkeys(name for word in words for name in (word, *_SPLIT.split(word)))
        mentioned = sorted({str(path) for name in names for path in self._files_at(name)})
        self._files.update(file_digests(path for path in mentioned if path not in self._files))
        return {path: self._files[path] for path in mentioned}

    def _files_at(self, name: str) -> Iterator[Path]:
        path = self._place / name if name else None
        try:
            if path is not None and path.is_file():
                yield path
            elif path is not None and path.is_dir() and name not in (".", ".."):
                yield from sorted(file for file in path.rglob("*") if file.is_file())[:MOST_FILES]
        except (OSError, ValueError):
            return

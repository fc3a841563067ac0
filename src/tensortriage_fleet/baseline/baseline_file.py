"""The file of a model's baselines: JSON that is sorted and indented, so that a difference of two reads as one.

It lies in the folder of baselines under the model's own path, ``models/cnn.onnx.json``, and is replaced in one step
under a lock, so that tests side by side may add targets to it.
"""

import contextlib
import dataclasses
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from tensortriage.sdk import UsageError, load, to_json, write_text
from tensortriage_fleet.baseline.figures import KeptTensor
from tensortriage_fleet.baseline.measured import BaselineData, BaselineEngine, BaselineModel

ENDING = ".json"
LOCK, IGNORED = ".lock", ".gitignore"
PATIENCE_SECONDS = 60.0
"""Seconds that another process may take to write a file of a few kilobytes, after its models were measured."""


@dataclasses.dataclass(frozen=True, slots=True)
class SavedOutput:
    """An output on a target.

    Attributes:
        target: Figures of the target.
        error: Distance from the right values; None where those are unknown.
        limit: How far a healthy engine may be, by sums in other orders and by rounding to its format; None where no
            limit can be set.
        freedoms: That with all freedoms of engines of its class; None where that is no more.
        basis: Source of the limit.
    """

    target: KeptTensor
    error: float | None = None
    limit: float | None = None
    freedoms: float | None = None
    basis: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class SavedVerdict:
    """The stored part of a diagnosis.

    Attributes:
        verdict: The verdict's word; the slug of the error, if it ended in one.
        exit_code: Exit code of the diagnosis.
        sentence: Headline and summary.
        culprits: The nodes it names, as ``Conv 'name'``, the first first.
    """

    verdict: str
    exit_code: int
    sentence: str
    culprits: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class SavedTarget:
    """A model on a target.

    Attributes:
        engine: The engine.
        versions: Versions of the engine, as ``engine``, of Python and of packages, and the processor.
        verdict: The diagnosis.
        outputs: By feed and output.
        problem: How the engine failed, in its own words; there are no outputs then.
        unevaluated: Why the model cannot be evaluated; there are no limits then.
    """

    engine: BaselineEngine
    versions: Mapping[str, str]
    verdict: SavedVerdict
    outputs: Mapping[str, Mapping[str, SavedOutput]]
    problem: str = ""
    unevaluated: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Baseline:
    """The baselines of a model.

    Attributes:
        model: The model.
        data: Its data.
        golden: Its right outputs, by feed and output, every result correctly rounded; none where they are unknown.
        targets: By the spec of the engine, without its worker.
    """

    model: BaselineModel
    data: BaselineData
    golden: Mapping[str, Mapping[str, KeptTensor]]
    targets: Mapping[str, SavedTarget]
    format: str = "tensortriage.baseline/1"


class BaselineFolder:
    """A folder of baselines.

    Attributes:
        folder: The folder.
        root: The folder that holds it, the base of paths in its files.

    Args:
        folder: The folder; it need not be there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = Path(os.path.abspath(folder))
        self.root = self.folder.parent

    def relative(self, path: Path) -> str:
        """Return a path from the root.

        Raises:
            UsageError: When it is not below it (``baseline-outside``).
        """
        for place, root in ((Path(os.path.abspath(path)), self.root), (path.resolve(), self.root.resolve())):
            if place.is_relative_to(root):
                return place.relative_to(root).as_posix()
        raise UsageError(
            f"{path} is outside of {self.root}, the folder that holds the baselines {self.folder.name}",
            slug="baseline-outside",
            cure=f"give --baseline a folder next to the models, e.g. --baseline {path.parent / self.folder.name}",
        )

    def file(self, model: str) -> Path:
        """Return the file of a model's baselines.

        Args:
            model: Path of the model from the root, or its name.
        """
        return self.folder / (model + ENDING)

    def arrays(self, model: str, target: str) -> Path:
        """Return the file of a target's outputs, where they are kept.

        Args:
            model: As for `file`.
            target: The target.
        """
        return self.folder / f"{model}.{re.sub(r'[^A-Za-z0-9=._-]+', '-', target)}.npz"

    def models(self) -> list[str]:
        """Return the models that have a baseline, as `file` takes them."""
        files = sorted(self.folder.rglob(f"*{ENDING}")) if self.folder.is_dir() else []
        return [file.relative_to(self.folder).as_posix().removesuffix(ENDING) for file in files]

    def read(self, model: str) -> Baseline | None:
        """Return the baselines of a model; None for none.

        Raises:
            StoreError: When the file cannot be read, or is none of this format.
        """
        file = self.file(model)
        return load(file, Baseline) if file.exists() else None

    def write(self, model: str, baseline: Baseline) -> None:
        """Write the baselines of a model, as `file` takes it.

        Raises:
            StoreError: When it cannot be written.
        """
        file = self.file(model)
        file.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(json.loads(to_json(baseline)), indent=1, sort_keys=True, ensure_ascii=False)
        write_text(file, text + "\n")

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from writing until the end of the block."""
        from filelock import FileLock

        self.folder.mkdir(parents=True, exist_ok=True)
        write_text(self.folder / IGNORED, f"{LOCK}\n")
        with FileLock(self.folder / LOCK, timeout=PATIENCE_SECONDS):
            yield

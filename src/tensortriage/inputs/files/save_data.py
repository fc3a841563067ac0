"""Writing feeds and saved outputs in any format that `tensortriage.inputs.files.open_data` reads.

Everything is written as it comes, one tensor or one sample in memory at a time (a .safetensors file is the exception:
its header comes first and lists every tensor). Files appear when complete; directories must be new or empty. Formats
without a notion of samples get numbered names ``0/NAME``, ``1/NAME``, ... when there is more than one.
"""

import contextlib
import itertools
import logging
import shutil
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO
from urllib.parse import quote

import numpy as np
from numpy.lib import format as npy_format

from tensortriage.errors import DataError, StoreError, UsageError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.files.data_file import DataFormat, Iteration, Kind
from tensortriage.inputs.files.polygraphy_write import (
    is_folder,
    new_folder,
    replacing,
    require_new,
    require_ours,
    write_inputs,
    write_outputs,
)
from tensortriage.inputs.files.stored_arrays import looks_numbered
from tensortriage.values import serial
from tensortriage.values.dtype import DType
from tensortriage.values.store import INDEX_NAME, ShardWriter
from tensortriage_worker.shards import write_shard

_logger = logging.getLogger(__name__)
SERIES_NAME = "series.json"
_BY_SUFFIX = {
    ".json": DataFormat.POLYGRAPHY,
    ".npz": DataFormat.NPZ,
    ".safetensors": DataFormat.SAFETENSORS,
    ".store": DataFormat.STORE,
}
_NO_DATA = (".onnx", ".engine", ".plan", ".trt", ".pt", ".pth", ".pt2", ".pkl", ".pb", ".npy", ".py", ".h5", ".csv")
"""Suffixes that name something else, or data that is not written as one file."""
_FOLDERS = (DataFormat.NPY, DataFormat.TEST_DATA)
Named = Sequence[tuple[str, Iterable[Iteration]]]
"""Runner name (empty for inputs) and iterations."""


@frozen_dataclass
class StoredSeries:
    """One series of a store.

    Attributes:
        runner: Name of the producer of the outputs; empty for inputs.
        seconds: Run time of every iteration; None where it is not known.
    """

    runner: str
    seconds: tuple[float | None, ...]


@frozen_dataclass
class StoredContents:
    """The file ``series.json`` of a store: tensor ``S/I/NAME`` belongs to series S, iteration I."""

    kind: Kind
    series: tuple[StoredSeries, ...]
    format: str = "tensortriage.series/1"


def format_for(path: Path, wanted: DataFormat | None = None) -> DataFormat:
    """Return the format in which a path is written.

    Args:
        path: Output; its suffix decides (none: a directory of Polygraphy JSON, or a test data set if named like one; an
            unknown one: a file of Polygraphy JSON, as there).
        wanted: The explicitly requested format.

    Raises:
        UsageError: When neither names a format, or they contradict each other (slug ``output-format``).
    """
    by_name = _BY_SUFFIX.get(path.suffix.lower())
    if not path.suffix:
        by_name = DataFormat.TEST_DATA if path.name.startswith("test_data_set") else None
    other = path.suffix.lower() in _NO_DATA
    if wanted is None:
        wanted = by_name or (None if other else DataFormat.POLYGRAPHY)
    free = not path.suffix or wanted in (*_FOLDERS, DataFormat.STORE) or (wanted is DataFormat.POLYGRAPHY and not other)
    fits = by_name is wanted or (by_name is None and free)
    if wanted is None or not fits or (wanted in (DataFormat.NPZ, DataFormat.SAFETENSORS) and not path.suffix):
        raise UsageError(
            f"'{path}' does not name a file" + (f" of format {wanted.value}" if wanted else " of a known format"),
            slug="output-format",
            cure="end it in .json, .npz, .safetensors or .store; without a suffix, a directory is written (--to json, "
            "npy or test-data-set)",
        )
    return wanted


def save(path: Path, series: Named, *, kind: Kind, wanted: DataFormat | None = None) -> int:
    """Write feeds or saved outputs.

    Args:
        path: File or directory to write.
        series: The series; formats other than JSON and our store take one series, and lose its runner's name.
        kind: Inputs or outputs, for the formats that distinguish them.
        wanted: Format; by default the one that the path names.

    Returns:
        The number of iterations (of the longest series).

    Raises:
        UsageError: For a path that names no format (``output-format``).
        DataError: As `check_place`; when there is nothing to write (``feed-empty``), or the format lacks an element
            type (``format-lacks-dtype``).
        StoreError: When the disk refuses (``file-unwritable``); nothing is left of a new file or directory then.
    """
    found = check_place(path, [name for name, _ in series], kind=kind, wanted=wanted)
    try:
        with _all_or_nothing(path):
            count = _save_as(found, path, series, kind)
    except OSError as error:
        raise StoreError(
            f"{path} cannot be written: {error.strerror or error}",
            slug="file-unwritable",
            cure="free disk space or choose another directory",
        ) from error
    _logger.info("wrote %d iterations of %s to %s as %s", count, kind.value, path, found.value)
    return count


def check_place(path: Path, runners: Sequence[str], *, kind: Kind, wanted: DataFormat | None = None) -> DataFormat:
    """Return the format in which a path will be written, and refuse data that it cannot hold.

    Args:
        path: File or directory to write.
        runners: Names of the series; one empty name for inputs.
        kind: Inputs or outputs.
        wanted: Format; by default the one that the path names.

    Raises:
        UsageError: For a path that names no format (``output-format``).
        DataError: When there are several series for a format of one (``several-runners``), or a directory is not empty
            (``output-not-empty``).
    """
    found = format_for(path, wanted)
    many = found is DataFormat.STORE or (found is DataFormat.POLYGRAPHY and kind is Kind.OUTPUTS)
    if not many and len(runners) != 1:
        raise DataError(
            f"{len(runners)} runners cannot be saved in {path}: its format holds one",
            slug="several-runners",
            cure=f"end it in .json or .store; triage data convert FILE --runner NAME -o {path.name} then takes one of "
            + ", ".join(f"'{name}'" for name in runners),
        )
    if found in _FOLDERS or (found is DataFormat.POLYGRAPHY and is_folder(path)):
        require_new(path)
    elif found is DataFormat.POLYGRAPHY and path.suffix.lower() not in _BY_SUFFIX:
        require_ours(path)
    return found


def _save_as(found: DataFormat, path: Path, series: Named, kind: Kind) -> int:
    if found is DataFormat.POLYGRAPHY and kind is Kind.OUTPUTS:
        return _some(write_outputs(path, series), path)
    if found is DataFormat.STORE:
        return save_store(path, series)
    iterations = series[0][1]
    if found is DataFormat.POLYGRAPHY:
        return _some(write_inputs(path, iterations), path)
    if found is DataFormat.TEST_DATA:
        return _some(_save_test_data(path, iterations, kind), path)
    if found is DataFormat.NPY:
        return _some(_save_npy_folder(path, iterations), path)
    if found is DataFormat.NPZ:
        return _some(_save_npz(path, iterations), path)
    return _some(_save_safetensors(path, iterations), path)


@contextlib.contextmanager
def _all_or_nothing(path: Path) -> Iterator[None]:
    """Remove a new directory again when its contents cannot be written completely."""
    is_new = not path.exists() or (path.is_dir() and not any(path.iterdir()))
    try:
        yield
    except BaseException:
        if is_new and path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        raise


def save_store(path: Path, series: Named) -> int:
    """Write a tensor store with the series that its tensors belong to; bf16 and fp8 included, memory-mapped to read.

    Args:
        path: Directory; a finished store that is there already is replaced.
        series: The series.

    Returns:
        The number of iterations of the longest series.

    Raises:
        DataError: When there is nothing to write (``feed-empty``), or the directory holds something else
            (``output-not-empty``).
        StoreError: When the disk refuses.
    """
    if not (path / INDEX_NAME).is_file():
        new_folder(path)
    (path / SERIES_NAME).unlink(missing_ok=True)
    contents = []
    with ShardWriter(path) as writer:
        for place, (runner, iterations) in enumerate(series):
            seconds = []
            for index, iteration in enumerate(iterations):
                seconds.append(iteration.seconds)
                for name, array in iteration.tensors.items():
                    writer.write(f"{place}/{index}/{name}", array)
            contents.append(StoredSeries(runner, tuple(seconds)))
        kind = Kind.OUTPUTS if any(runner for runner, _ in series) else Kind.INPUTS
        serial.dump(StoredContents(kind, tuple(contents)), path / SERIES_NAME)
    return _some(max((len(item.seconds) for item in contents), default=0), path)


def _some(count: int, path: Path) -> int:
    if not count:
        raise DataError(f"there is no sample to write to {path}", slug="feed-empty", cure="give files with samples")
    return count


def _numbered(iterations: Iterable[Iteration]) -> Iterator[tuple[int, Mapping[str, str], Iteration]]:
    """Yield the number of an iteration, the names to write its tensors under (by own name), and the iteration."""
    stream = iter(iterations)
    first = list(itertools.islice(stream, 2))
    is_numbered = len(first) > 1 or any(looks_numbered(list(it.tensors)) for it in first)
    for index, iteration in enumerate(itertools.chain(first, stream)):
        yield index, {name: f"{index}/{name}" if is_numbered else name for name in iteration.tensors}, iteration


def _save_npz(path: Path, iterations: Iterable[Iteration]) -> int:
    count = 0
    with replacing(path) as file, zipfile.ZipFile(file, "w", allowZip64=True) as archive:
        for index, names, iteration in _numbered(iterations):
            for name, array in iteration.tensors.items():
                with archive.open(f"{names[name]}.npy", "w", force_zip64=True) as member:
                    _write_npy(member, name, array, path)
            count = index + 1
    return count


def _save_safetensors(path: Path, iterations: Iterable[Iteration]) -> int:
    tensors, count = {}, 0
    for index, names, iteration in _numbered(iterations):
        tensors.update({names[name]: array for name, array in iteration.tensors.items()})
        count = index + 1
    path.parent.mkdir(parents=True, exist_ok=True)
    write_shard(path, tensors)
    return count


def _save_npy_folder(path: Path, iterations: Iterable[Iteration]) -> int:
    count = 0
    new_folder(path)
    for index, names, iteration in _numbered(iterations):
        folder = path / str(index) if any(names[name] != name for name in names) else path
        folder.mkdir(exist_ok=True)
        for name, array in iteration.tensors.items():
            with replacing(folder / f"{quote(name, safe=' ()[],:;=+@#$!&')}.npy") as file:
                _write_npy(file, name, array, path)
        count = index + 1
    return count


def _save_test_data(path: Path, iterations: Iterable[Iteration], kind: Kind) -> int:
    from tensortriage.model.io.tensor_pb import write_tensor  # onnx is slow to import, and only this format needs it.

    count = 0
    new_folder(path)
    word = "input" if kind is Kind.INPUTS else "output"
    for index, names, iteration in _numbered(iterations):
        is_alone = path.name.startswith("test_data_set_") and all(names[name] == name for name in names)
        folder = path if is_alone else path / f"test_data_set_{index}"
        folder.mkdir(exist_ok=True)
        for position, (name, array) in enumerate(iteration.tensors.items()):
            write_tensor(folder / f"{word}_{position}.pb", name, array)
        count = index + 1
    return count


def _write_npy(file: IO[bytes], name: str, array: np.ndarray, path: Path) -> None:
    dtype = DType.from_numpy(array.dtype)
    if dtype.numpy.num >= 256:  # A type of ml_dtypes, which the .npy format does not know.
        raise DataError(
            f"'{name}' is {dtype.label}, which cannot be stored in {path}",
            slug="format-lacks-dtype",
            cure="write .safetensors, .json, .store or a test data set instead",
        )
    plain = array.astype(str) if dtype is DType.STRING else array
    npy_format.write_array(file, plain, allow_pickle=False)

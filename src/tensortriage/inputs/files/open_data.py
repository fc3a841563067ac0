"""Recognizes the format of a path, by its name and its first bytes, and opens its reader.

Name and contents must agree: a renamed file is an error that says so, since a guess would decide the test data.
"""

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from urllib.parse import unquote

import numpy as np

from tensortriage.errors import DataError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.feed import LazyTensors
from tensortriage.inputs.files.data_file import DataFile, DataFormat, Iteration, Kind, Series
from tensortriage.inputs.files.npy import open_npy, open_npz
from tensortriage.inputs.files.polygraphy import open_polygraphy
from tensortriage.inputs.files.save_data import SERIES_NAME, StoredContents
from tensortriage.inputs.files.stored_arrays import ArrayStored, Stored, samples
from tensortriage.values import serial
from tensortriage.values.files import absence, open_regular
from tensortriage.values.spec import ValueSpec
from tensortriage.values.store import INDEX_NAME, MappedStore
from tensortriage.values.text import whole_number
from tensortriage_worker.shards import ShardError, ShardReader

_SUFFIXES = {
    ".npz": DataFormat.NPZ,
    ".npy": DataFormat.NPY,
    ".json": DataFormat.POLYGRAPHY,
    ".safetensors": DataFormat.SAFETENSORS,
}
_MAGIC = {DataFormat.NPZ: (b"PK",), DataFormat.NPY: (b"\x93NUMPY",)}
_INPUT_FILE = re.compile(r"input_(\d+)\.pb")
_OUTPUT_FILE = re.compile(r"output_(\d+)\.pb")
_TEST_SET = re.compile(r"test_data_set_(\d+)")
_HELP = (
    "give a .npz, .npy, .safetensors or Polygraphy .json file, a directory of such files of one kind, or a "
    "test_data_set_* directory"
)
_PICKLE = "a pickle, which is never loaded"
_FOREIGN = {
    ".pkl": _PICKLE, ".pickle": _PICKLE, ".pt": _PICKLE, ".pth": _PICKLE,
    ".onnx": "a model, not data", ".bin": "raw bytes without shape or type", ".raw": "raw bytes without shape or type",
    ".pb": "one tensor of a test data set",
}  # fmt: skip
_NAMED = (".pkl", ".pickle", ".pt", ".pth", ".onnx", ".pb")
"""Suffixes of other kinds of files, which are not read here, with their contents."""


def open_data(path: Path, specs: Sequence[ValueSpec] = ()) -> DataFile:
    """Open a file or directory of feeds or saved outputs; arrays are read on demand.

    Args:
        path: The user's path.
        specs: The model's inputs; they decide whether a leading axis holds samples, and name unnamed test tensors.

    Raises:
        DataError: When it does not exist (``feed-file-missing``), is of no known format (``feed-format-unknown``), is
            not of its name's format (``feed-format-mismatch``), or is damaged (the slug of its format).

    Example:
        >>> for iteration in open_data(Path("digits.npz")).series[0]:  # doctest: +SKIP
        ...     print({name: array.shape for name, array in iteration.tensors.items()})
    """
    found = detect(path)
    if found is DataFormat.POLYGRAPHY:
        return open_polygraphy(path)
    if found is DataFormat.TEST_DATA:
        return _inputs(path, found, partial(_test_data, path, specs))
    if found is DataFormat.NPY and path.is_dir():
        return _inputs(path, found, partial(_npy_folder, path, specs))
    if found is DataFormat.STORE and (path / SERIES_NAME).is_file():
        return _series_of_store(path)
    if found is not DataFormat.STORE and path.is_dir():
        return _inputs(path, found, partial(_folder, path, found, specs))
    stored = _stored(path, found, specs)
    return _inputs(path, found, partial(samples, stored, specs, path))


def detect(path: Path) -> DataFormat:
    """Return the format of a file or directory.

    Raises:
        DataError: When it does not exist, cannot be read, or is of no known format (slugs as for `open_data`).
    """
    if not path.exists():
        raise DataError(absence(path), slug="feed-file-missing", cure="check the path")
    if path.is_dir():
        return _detect_folder(path)
    suffix = path.suffix.lower()
    try:
        with open_regular(path) as file:
            head = file.read(64)
    except OSError as error:
        raise DataError(
            f"{path} cannot be read: {error.strerror or error}", slug="feed-unreadable", cure="give a regular file"
        ) from error
    actual = next((f for f, magics in _MAGIC.items() if head.startswith(magics)), None)
    if suffix not in _SUFFIXES and suffix not in _NAMED and head.lstrip()[:1] in (b"{", b"["):
        return DataFormat.POLYGRAPHY  # Polygraphy writes JSON under any file name
    if suffix not in _SUFFIXES:
        what = _FOREIGN.get(suffix, "in no format that can be read")
        raise DataError(f"{path} is {what}", slug="feed-format-unknown", cure=_HELP)
    expected = _SUFFIXES[suffix]
    if actual is not None and actual is not expected:
        what, cure = f"holds {actual.value}", f"rename it to {path.with_suffix('.' + actual.value).name}"
        raise DataError(f"{path} is named .{expected.value}, but {what}", slug="feed-format-mismatch", cure=cure)
    return expected


def _detect_folder(path: Path) -> DataFormat:
    if (path / INDEX_NAME).is_file() and any(path.glob("shard-*.safetensors")):
        return DataFormat.STORE
    names = sorted(entry.name for entry in path.iterdir())
    if any(part.fullmatch(name) for part in (_INPUT_FILE, _OUTPUT_FILE, _TEST_SET) for name in names):
        return DataFormat.TEST_DATA
    kinds = {kind for suffix, kind in _SUFFIXES.items() if any(name.endswith(suffix) for name in names)}
    kinds |= {DataFormat.NPY} if _sample_folders(path) else set()
    kinds = kinds & {DataFormat.NPY, DataFormat.POLYGRAPHY} or kinds  # files of other kinds may lie next to them
    if len(kinds) != 1:
        raise DataError(
            f"{path} holds "
            + (f"{' and '.join(sorted(f'.{kind.value}' for kind in kinds))} files" if kinds else "no feeds"),
            slug="feed-format-unknown",
            cure="keep one format in a directory" if kinds else _HELP,
        )
    return kinds.pop()


def _inputs(path: Path, found: DataFormat, read: "partial[Iterator[Mapping[str, np.ndarray]]]") -> DataFile:
    return DataFile(path, found, Kind.INPUTS, (Series("", lambda: map(Iteration, read())),))


def _stored(path: Path, found: DataFormat, specs: Sequence[ValueSpec]) -> dict[str, Stored]:
    if found is DataFormat.NPZ:
        arrays = open_npz(path, str(path))
        return {_file_name(path, specs): arrays["arr_0"]} if arrays.keys() == {"arr_0"} and len(specs) == 1 else arrays
    if found is DataFormat.NPY:
        return {_file_name(path, specs): open_npy(path)}
    if found is DataFormat.STORE:
        store = MappedStore(path)
        store.verify()
        return {name: _store_item(store, name) for name in store.names()}
    try:
        reader = ShardReader(path)
        return {name: _Item(reader.shapes[name], partial(_shard_tensor, reader, name)) for name in reader.labels}
    except ShardError as error:
        raise _damaged_shard(error) from error


def _file_name(path: Path, specs: Sequence[ValueSpec]) -> str:
    """Name the array of a lone .npy file: after the only input, if there is but one, else after the file."""
    return specs[0].name if len(specs) == 1 else unquote(path.stem)


def _series_of_store(path: Path) -> DataFile:
    contents = serial.load(path / SERIES_NAME, StoredContents)
    store = MappedStore(path)
    store.verify()
    names: dict[tuple[int, int], dict[str, str]] = {}
    for full in store.names():
        place, index, name = (*full.split("/", 2), "", "")[:3]
        row, column = whole_number(place), whole_number(index)
        if row is not None and column is not None:
            names.setdefault((row, column), {})[name] = full
    series = tuple(
        Series(item.runner, partial(_iterations_of_store, store, names, place, item.seconds))
        for place, item in enumerate(contents.series)
    )
    return DataFile(path, DataFormat.STORE, contents.kind, series)


def _iterations_of_store(
    store: MappedStore,
    names: Mapping[tuple[int, int], Mapping[str, str]],
    place: int,
    seconds: Sequence[float | None],
) -> Iterator[Iteration]:
    for index, spent in enumerate(seconds):
        loaders = {name: partial(store.__getitem__, full) for name, full in names.get((place, index), {}).items()}
        yield Iteration(LazyTensors(loaders), spent)


@frozen_dataclass
class _Item:
    """One tensor of a store or of a .safetensors file; its rows are those of the whole."""

    shape: tuple[int, ...]
    load: Callable[[], np.ndarray]

    def rows(self) -> Iterator[np.ndarray]:
        return ArrayStored(self.load()).rows()


def _store_item(store: MappedStore, name: str) -> _Item:
    shape = store.spec(name).shape or ()
    return _Item(tuple(size for size in shape if isinstance(size, int)), partial(store.__getitem__, name))


def _shard_tensor(reader: ShardReader, name: str) -> np.ndarray:
    try:
        return reader.tensor(name)
    except ShardError as error:
        raise _damaged_shard(error) from error


def _damaged_shard(error: ShardError) -> DataError:
    return DataError(
        str(error), slug="safetensors-unreadable", cure="save it again, e.g. with safetensors.numpy.save_file"
    )


def _sample_folders(path: Path) -> list[Path]:
    """Return the subdirectories named by sample number, in order."""
    found = [entry for entry in path.iterdir() if entry.name.isdecimal() and any(entry.glob("*.npy"))]
    return sorted(found, key=lambda entry: int(entry.name))


def _folder(path: Path, found: DataFormat, specs: Sequence[ValueSpec]) -> Iterator[Mapping[str, np.ndarray]]:
    for file in sorted(path.glob(f"*.{found.value}")):
        yield from samples(_stored(file, found, specs), specs, file)


def _npy_folder(path: Path, specs: Sequence[ValueSpec]) -> Iterator[Mapping[str, np.ndarray]]:
    folders = _sample_folders(path)
    for folder in folders:
        yield LazyTensors({name: array.load for name, array in _npy_files(folder).items()})
    files = {} if folders else _npy_files(path)
    if len(specs) == 1 and specs[0].name not in files:  # each holds the only input
        yield from itertools.chain.from_iterable(samples({specs[0].name: each}, specs, path) for each in files.values())
    elif files:
        yield from samples(files, specs, path)


def _npy_files(folder: Path) -> dict[str, Stored]:
    return {unquote(file.stem): open_npy(file) for file in sorted(folder.glob("*.npy"))}


def _test_data(path: Path, specs: Sequence[ValueSpec]) -> Iterator[Mapping[str, np.ndarray]]:
    sets = [entry for entry in path.iterdir() if _TEST_SET.fullmatch(entry.name)]
    for folder in sorted(sets, key=lambda entry: int(entry.name.rsplit("_", 1)[1])) or [path]:
        yield _test_set(folder, specs)


def _test_set(folder: Path, specs: Sequence[ValueSpec]) -> dict[str, np.ndarray]:
    """Read ``input_0.pb``, ``input_1.pb``, ...; a tensor without name belongs to the input of its number.

    Outputs alone are the test of a model without inputs.
    """
    from tensortriage.model.io.tensor_pb import read_tensor  # onnx is slow to import, and only this format needs it.

    files = {int(match[1]): entry for entry in folder.iterdir() if (match := _INPUT_FILE.fullmatch(entry.name))}
    no_inputs = not files and any(_OUTPUT_FILE.fullmatch(entry.name) for entry in folder.iterdir())
    if sorted(files) != list(range(len(files))) or not (files or no_inputs):
        raise DataError(
            f"{folder} holds no input_0.pb, input_1.pb, ... without gaps",
            slug="test-data-incomplete",
            cure="add the missing files",
        )
    tensors: dict[str, np.ndarray] = {}
    for index in range(len(files)):
        name, array = read_tensor(files[index])
        name = name or (specs[index].name if index < len(specs) else f"input_{index}")
        if name in tensors:
            raise DataError(
                f"{files[index]} holds another tensor named '{name}'",
                slug="test-data-incomplete",
                cure="name every tensor after one input of the model",
            )
        tensors[name] = array
    return tensors

"""Writing Polygraphy's JSON files as a stream: one tensor is in memory at a time, however many are written.

A path with a suffix becomes one file; a path without becomes a directory with one file per iteration, as Polygraphy
0.53 does it. A file appears under its name only when it is complete.
"""

import base64
import contextlib
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy_format

from tensortriage.errors import DataError
from tensortriage.inputs.files.data_file import Iteration
from tensortriage.inputs.files.polygraphy import CLASS_KEY, DTYPE_KEY
from tensortriage.values.dtype import DType
from tensortriage.values.files import placed

_CHUNK_BYTES = 3 << 20
_ITERATION = re.compile(r"\d{10}\.json")


def write_inputs(path: Path, iterations: Iterable[Iteration]) -> int:
    """Write inputs, usable with Polygraphy's ``--load-inputs``, and return the number of iterations.

    Raises:
        DataError: When a directory to write is not empty (``output-not-empty``).
        OSError: When the disk refuses.
    """
    count = 0
    if is_folder(path):
        for count, iteration in enumerate(iterations, start=1):
            with _iteration_file(path, count - 1) as file:
                _write_feed(file, iteration.tensors)
        return count
    with replacing(path) as file:
        file.write(b"[")
        for count, iteration in enumerate(iterations, start=1):
            file.write(b"," if count > 1 else b"")
            _write_feed(file, iteration.tensors)
        file.write(b"]")
    return count


def write_outputs(path: Path, series: Sequence[tuple[str, Iterable[Iteration]]]) -> int:
    """Write saved outputs (a ``RunResults``), usable with ``--load-outputs``.

    Args:
        path: File or directory.
        series: Runner name and its iterations, in the order of the runners.

    Returns:
        The largest number of iterations of a runner.

    Raises:
        DataError: When a directory to write is not empty (``output-not-empty``).
        OSError: When the disk refuses.
    """
    if not is_folder(path):
        with replacing(path) as file:
            return _write_results(file, series)
    count = 0
    rows = itertools.zip_longest(*(iterations for _, iterations in series))
    for count, row in enumerate(rows, start=1):
        present = [(name, [it]) for (name, _), it in zip(series, row, strict=True) if it is not None]
        with _iteration_file(path, count - 1) as file:
            _write_results(file, present)
    return count


def encode_array(array: np.ndarray) -> Iterator[bytes]:
    """Yield the JSON text of an array, as Polygraphy encodes it, in pieces of a few megabytes."""
    dtype = DType.from_numpy(array.dtype)
    extra = b""
    if dtype is DType.STRING:
        array = array.astype(str)
    elif dtype.numpy.num >= 256:  # A type of ml_dtypes, which the .npy format does not know.
        extra = f', "{DTYPE_KEY}": {json.dumps(dtype.label)}'.encode()
        array = array.astype(np.int8) if dtype.is_integer else array.view(f"u{dtype.numpy.itemsize}")
    yield b'{"array": "'
    yield from _base64(_npy_pieces(np.asarray(array, order="C")))
    yield f'", "{CLASS_KEY}": "ndarray"'.encode() + extra + b"}"


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that takes its name only when it is complete; an existing one is replaced."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with placed(path) as file:
        yield file


def is_folder(path: Path) -> bool:
    """Whether a path becomes a directory with a file per iteration: one without suffix that is not a file already."""
    return not path.suffix and not path.is_file()


def new_folder(path: Path) -> Path:
    """Create a directory to write into, without the iterations of an earlier time; see `require_new`."""
    require_new(path)
    path.mkdir(parents=True, exist_ok=True)
    for earlier in path.iterdir():
        earlier.unlink()
    return path


def require_new(path: Path) -> None:
    """Refuse a directory that holds anything but the numbered iterations of an earlier time.

    Raises:
        DataError: When something else is there (``output-not-empty``).
    """
    if path.exists() and (not path.is_dir() or any(not _is_iteration(entry) for entry in path.iterdir())):
        raise DataError(
            f"{path} exists and is not a directory that is empty or holds only iterations",
            slug="output-not-empty",
            cure="name a new directory, or remove its contents; with a suffix (.json, .npz, ...) a file is written",
        )


def require_ours(path: Path) -> None:
    """Refuse to overwrite a file without a data suffix, unless it is empty or looks like JSON.

    Raises:
        DataError: When something else is there (``output-not-data``).
    """
    if path.is_file() and (head := _head(path)) and head[0] not in b"{[":
        raise DataError(
            f"{path} exists and holds no data of this kind",
            slug="output-not-data",
            cure="name another file, or remove it",
        )


def _head(path: Path) -> bytes:
    with open(path, "rb") as file:
        return file.read(64).lstrip()


def _is_iteration(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and _ITERATION.fullmatch(path.name) is not None


def _iteration_file(folder: Path, index: int) -> contextlib.AbstractContextManager[IO[bytes]]:
    if index == 0:
        new_folder(folder)
    return replacing(folder / f"{index:010d}.json")


def _write_feed(file: IO[bytes], tensors: Mapping[str, np.ndarray]) -> None:
    file.write(b"{")
    for index, (name, array) in enumerate(tensors.items()):
        file.write(f"{',' if index else ''}\n    {json.dumps(name)}: ".encode())
        file.writelines(encode_array(array))
    file.write(b"\n}")


def _write_results(file: IO[bytes], series: Iterable[tuple[str, Iterable[Iteration]]]) -> int:
    longest = 0
    file.write(b'{"lst": [')
    for index, (runner, iterations) in enumerate(series):
        file.write(f"{',' if index else ''}[{json.dumps(runner)}, [".encode())
        count = 0
        for count, iteration in enumerate(iterations, start=1):
            file.write(b"," if count > 1 else b"")
            _write_iteration(file, runner, iteration)
        longest = max(longest, count)
        file.write(b"]]")
    file.write(f'], "{CLASS_KEY}": "RunResults"}}'.encode())
    return longest


def _write_iteration(file: IO[bytes], runner: str, iteration: Iteration) -> None:
    file.write(b'{"outputs": {')
    for index, (name, array) in enumerate(iteration.tensors.items()):
        file.write(f'{"," if index else ""}\n    {json.dumps(name)}: {{"values": '.encode())
        file.writelines(encode_array(array))
        file.write(f', "{CLASS_KEY}": "LazyArray"}}'.encode())
    rest = {"runtime": iteration.seconds, "runner_name": runner, CLASS_KEY: "IterationResult"}
    file.write(b"\n}, " + json.dumps(rest)[1:].encode())


def _npy_pieces(array: np.ndarray) -> Iterator[bytes | memoryview]:
    header = BytesIO()
    npy_format.write_array_header_1_0(header, npy_format.header_data_from_array_1_0(array))
    yield header.getvalue()
    if array.nbytes:
        data = array.reshape(-1).view(np.uint8).data
        for start in range(0, len(data), _CHUNK_BYTES):
            yield data[start : start + _CHUNK_BYTES]


def _base64(pieces: Iterable[bytes | memoryview]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        block = rest + bytes(piece)
        whole = len(block) // 3 * 3
        yield base64.b64encode(block[:whole])
        rest = block[whole:]
    yield base64.b64encode(rest)

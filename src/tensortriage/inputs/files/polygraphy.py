"""Polygraphy's JSON files of inputs and saved outputs, read one tensor at a time.

The files are JSON with numpy arrays as base64 of their .npy bytes. Every object of a Polygraphy type has its name in
the key ``polygraphy_class`` (formerly ``__polygraphy_encoded_<Type>``); the shapes of the documents are in
``docs/feeds.md``. Checked against Polygraphy 0.53.6, whose ``polygraphy/json/serde.py`` and
``polygraphy/comparator/struct.py`` define them.

Our extension: numpy's .npy has no bf16, fp8, fp4 and int4. Such an array is stored as integers (the raw bits; of int4
the values) with the true type in the key ``tensortriage_dtype``, which Polygraphy ignores.
"""

import base64
import binascii
import io
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np

from tensortriage.errors import DataError, UsageError
from tensortriage.inputs.feed import LazyTensors
from tensortriage.inputs.files.data_file import DataFile, DataFormat, Iteration, Kind, Series
from tensortriage.inputs.files.json_view import View, open_json
from tensortriage.inputs.files.npy import Header, open_npz, read_header
from tensortriage.values.dtype import DType

CLASS_KEY = "polygraphy_class"
LEGACY_PREFIX = "__polygraphy_encoded_"
LEGACY_MARKER = "polygraphy_serialized_json_type"
DTYPE_KEY = "tensortriage_dtype"


def open_polygraphy(path: Path) -> DataFile:
    """Open a Polygraphy file of inputs or outputs, or a directory with one such file per iteration.

    Args:
        path: A ``.json`` file, or a directory whose ``*.json`` files are the iterations in the order of their names.

    Raises:
        DataError: When a file is damaged (``json-invalid``), holds neither inputs nor outputs
            (``polygraphy-not-data``), or the directory has no ``.json`` file (``feed-empty``).
    """
    files = iteration_files(path) if path.is_dir() else (path,)
    name, fields = classed(open_json(files[0]))
    if name == "RunResults":
        runners = [runner for runner, _ in _runs(fields, files[0])]
        series = tuple(
            Series(runner, partial(_outputs, files, runner, runners[:index].count(runner)))
            for index, runner in enumerate(runners)
        )
        return DataFile(path, DataFormat.POLYGRAPHY, Kind.OUTPUTS, series)
    if name:
        raise _not_data(files[0], f"a {name}")
    return DataFile(path, DataFormat.POLYGRAPHY, Kind.INPUTS, (Series("", partial(_inputs, files)),))


def document_class(path: Path) -> str:
    """Return the Polygraphy type of a JSON file's contents; empty for inputs and for foreign documents.

    Raises:
        DataError: When it is not JSON (``json-invalid``).
    """
    return classed(open_json(path))[0]


def iteration_files(folder: Path) -> tuple[Path, ...]:
    """Return the ``.json`` files of a directory in lexical order, which is the order of iterations.

    Raises:
        DataError: When there is none (``feed-empty``).
    """
    files = tuple(sorted(folder.glob("*.json")))
    if not files:
        raise DataError(f"{folder} holds no .json file", slug="feed-empty", cure="name the right directory")
    return files


def classed(view: View) -> tuple[str, dict[str, View]]:
    """Return the Polygraphy type of an object and its fields; the type is empty for plain objects and lists."""
    if not view.is_object:
        return "", {}
    fields = view.fields()
    for key in fields:
        if key.startswith(LEGACY_PREFIX) and fields[key].value() == LEGACY_MARKER:
            return key.removeprefix(LEGACY_PREFIX), fields
    return (str(fields[CLASS_KEY].value()) if CLASS_KEY in fields else ""), fields


def _inputs(files: tuple[Path, ...]) -> Iterator[Iteration]:
    for path in files:
        top = open_json(path)
        for view in top.elements() if top.is_list else [top]:
            yield Iteration(_feed(view, path))


def _feed(view: View, path: Path) -> Mapping[str, np.ndarray]:
    name, fields = classed(view)
    if name or not view.is_object:
        raise _not_data(path, f"a {name}" if name else "a list of something else")
    return _lazy(fields, path)


def _lazy(fields: Mapping[str, View], path: Path) -> LazyTensors:
    return LazyTensors({key: partial(decode_array, value, key, path) for key, value in fields.items()})


def _outputs(files: tuple[Path, ...], runner: str, nth: int) -> Iterator[Iteration]:
    """Yield the iterations of the nth runner of a name; it may be absent from later files of a directory."""
    for path in files:
        name, fields = classed(open_json(path))
        if name != "RunResults":
            raise _not_data(path, f"a {name}" if name else "inputs, where its neighbours hold outputs")
        lists = [iterations for found, iterations in _runs(fields, path) if found == runner]
        if nth < len(lists):
            for view in lists[nth].elements():
                yield _iteration(view, path)


def _runs(fields: Mapping[str, View], path: Path) -> Iterator[tuple[str, View]]:
    for pair in _field(fields, "lst", path).elements():
        parts = list(pair.elements())
        if len(parts) != 2 or not parts[0].is_string or not parts[1].is_list:
            raise pair.invalid("[runner, [iterations]] was expected")
        yield str(parts[0].value()), parts[1]


def _seconds(value: object) -> float | None:
    try:
        return float(value) if isinstance(value, int | float) else None
    except OverflowError:  # more digits than any number of seconds has
        return None


def _iteration(view: View, path: Path) -> Iteration:
    name, fields = classed(view)
    if name != "IterationResult":
        raise view.invalid("an IterationResult was expected")
    outputs = _field(fields, "outputs", path).fields()
    seconds = fields["runtime"].value() if "runtime" in fields else None
    return Iteration(
        _lazy(outputs, path),
        _seconds(seconds),
    )


def _field(fields: Mapping[str, View], key: str, path: Path) -> View:
    if key not in fields:
        raise _not_data(path, f"an object without '{key}'")
    return fields[key]


def decode_array(view: View, name: str, path: Path) -> np.ndarray:
    """Return the array of an encoded ndarray, or of a LazyArray or FormattedArray around one.

    Args:
        view: View of the value.
        name: Name of the tensor, for messages.
        path: The file, for messages.

    Raises:
        DataError: When it is no array (``polygraphy-not-data``), a damaged one (``npy-unreadable``), or a torch tensor
            (``polygraphy-torch``), whose payload is a pickle.
    """
    kind, fields = classed(view)
    where = f"{path}: '{name}'"
    if kind in ("LazyArray", "LazyNumpyArray"):
        return decode_array(_field(fields, "values", path), name, path)
    if kind == "FormattedArray":
        return decode_array(_field(fields, "array", path), name, path)
    if kind == "Tensor":
        raise DataError(
            f"{where} is a torch tensor, saved as a pickle, which is never loaded",
            slug="polygraphy-torch",
            cure="save numpy arrays: tensor.numpy(), or --data-loader-backend-module numpy",
        )
    if kind != "ndarray":
        raise _not_data(path, f"'{name}', which is {f'a {kind}' if kind else 'not an array'}")
    array = _payload(_field(fields, "array", path), where)
    return _retype(array, str(fields[DTYPE_KEY].value()), where) if DTYPE_KEY in fields else array


def _payload(view: View, where: str) -> np.ndarray:
    text = view.text()
    try:
        data = base64.b64decode(text, validate=True)
        if not data.startswith((b"\x93NUMPY", b"PK")):
            raise ValueError("no array inside")
    except (ValueError, binascii.Error):
        data = _latin1(view, where)
    if data.startswith(b"PK"):
        members = list(open_npz(io.BytesIO(data), where).values())
        if not members:
            raise _damaged(where, "an archive without arrays")
        return members[0].load()
    stream = io.BytesIO(data)
    header = read_header(stream, where)
    return _from_buffer(data, stream.tell(), header, where)


def _latin1(view: View, where: str) -> bytes:
    """Decode the oldest form: the bytes as characters."""
    try:
        return str(view.value()).encode("latin-1")
    except UnicodeEncodeError as error:
        raise _damaged(where, "neither base64 nor latin-1") from error


def _from_buffer(data: bytes, start: int, header: Header, where: str) -> np.ndarray:
    if header.nbytes != len(data) - start:
        raise _damaged(where, f"its header claims {header.nbytes} bytes of data, there are {len(data) - start}")
    if not header.nbytes:
        return np.zeros(header.shape, header.dtype)
    shape = header.shape[::-1] if header.is_fortran else header.shape
    array = np.frombuffer(data, header.dtype, offset=start).reshape(shape)
    return array.T if header.is_fortran else array


def _retype(array: np.ndarray, label: str, where: str) -> np.ndarray:
    try:
        dtype = DType.parse(label)
    except UsageError as error:
        raise _damaged(where, f"element type '{label}'") from error
    if dtype.is_integer:
        return array.astype(dtype.numpy)
    if array.dtype.itemsize != dtype.numpy.itemsize:
        raise _damaged(where, f"{array.dtype} cannot hold {label}")
    return array.view(dtype.numpy)


def _damaged(where: str, reason: str) -> DataError:
    return DataError(f"{where} is not a whole array: {reason}", slug="npy-unreadable", cure="save the file again")


def _not_data(path: Path, found: str) -> DataError:
    return DataError(
        f"{path} holds {found}, neither inputs nor saved outputs",
        slug="polygraphy-not-data",
        cure="give a file of --save-inputs or --save-outputs (accuracy results: triage check accuracy)",
    )

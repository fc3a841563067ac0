"""Files of every kind with one mutation each; a seed is a file."""

import json
import random

import onnx

from hostile.mutation import (
    mutated_bytes,
    mutated_json,
    mutated_message,
    mutated_npy,
    mutated_npz,
    mutated_safetensors,
)
from hostile.originals import data_files, model_files

_BY_SUFFIX = {
    "npz": mutated_npz, "npy": mutated_npy, "safetensors": mutated_safetensors, "json": mutated_json,
    "pb": lambda data, rng: mutated_message(data, rng, onnx.TensorProto),
}  # fmt: skip


def mutated_file(name, data, rng):
    """Return the bytes of a file, mutated by what its name's suffix says it is; or at random."""
    change = _BY_SUFFIX.get(name.rsplit(".", 1)[-1], mutated_bytes)
    try:
        return change(data, rng)
    except (ValueError, TypeError, AttributeError, KeyError):  # protobuf, or a format, takes no such value
        return mutated_bytes(data, rng)


def model(seed):
    """Return the name of a model and the bytes of a mutation of it."""
    rng = random.Random(seed)
    name = rng.choice(sorted(model_files()))
    data = model_files()[name]
    if rng.random() < 0.15:
        return name, mutated_bytes(data, rng)
    for _ in range(20):
        try:
            return name, mutated_message(data, rng)
        except (ValueError, TypeError):  # protobuf takes no such value
            continue
    return name, mutated_bytes(data, rng)


def data(seed):
    """Return the path of a data file, what is to be read, and files by path, one of them mutated."""
    rng = random.Random(seed)
    path = rng.choice(sorted(data_files()))
    top = path.split("/")[0]
    files = {name: data for name, data in data_files().items() if name.split("/")[0] == top}
    files[path] = mutated_file(path, files[path], rng)
    return top, files


def case(files, seed):
    """Return the name of the file that was changed, and the files of a case with that change.

    Args:
        files: Content by path in the case.
        seed: Which change.
    """
    rng = random.Random(seed)
    documents = [name for name in files if name.endswith(".json")]
    name = rng.choice(sorted(documents if rng.random() < 0.7 else files))
    return name, {**files, name: mutated_file(name, files[name], rng)}


def said(answer, rng):
    """Return a document with a mutation, as text."""
    return mutated_json(json.dumps(answer).encode(), rng).decode("latin1")

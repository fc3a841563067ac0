"""Files that runs left for later ones: tactics, replays of checks, saved outputs, batches of PyTorch, repro packs."""

import functools
import io
import json
import random
import tempfile
import zipfile
import zlib
from pathlib import Path

import numpy as np

from hostile.mutated_files import mutated_file
from hostile.mutation import mutated_bytes, mutated_tree
from tensortriage.engines.base import Choice
from tensortriage.inputs.files.data_file import DataFormat, Iteration, Kind
from tensortriage.inputs.files.save_data import save
from tensortriage.runs.analyses.tactics import TacticRecord, save_record
from tensortriage.runs.commands.replay import BINDING, FORMAT

ALGORITHM = {
    "implementation": 2147483657, "tactic": -3855385237722507464, "polygraphy_class": "Algorithm",
    "inputs": [{"dtype": "DataType.HALF", "strides": [64, 1], "vectorized_dim": 1, "components_per_element": 8}],
    "outputs": [{"dtype": "DataType.FLOAT", "strides": [64, 1], "vectorized_dim": None}],
}  # fmt: skip
LOG = """\
[V] [TRT] Autotuning op matMul1(key: 0x1814870c44ff0f8574df6e3dda04cbd7):
[V] [TRT] Sorted table of all evaluated tactics:
[V] [TRT] tactic_id, cost(in ms), cost/fastest_cost, prediction_correlation, kernel_name, tactic_hash, tunable_parameter
[V] [TRT]    3, 0.0112640, 1.00000, 0.50673, sm80_xmma_gemm_f32f32_tn, 0x665ded9abbf88,
[V] [TRT] The selected tactic is (tactic hash, cost(in ms)):0x665ded9abbf88,  0.011264
[V] [TRT] Writing the best tactic (0x665ded9abbf88) to cache
"""
CHECK = {
    "state": {"num_nodes": 3, "candidate": "c", "attempt": 0, "outcome": "same", "signature": "s"},
    "iteration_info": {"iteration": 0}, "success": False, "polygraphy_class": "IterationContext",
}  # fmt: skip
BOUND = "model and command"
TORCH_SAVED = ("data.pkl", "data/0", "version", "byteorder")


@functools.cache
def tactic_files():
    """Return the bytes of files that tell tactics, by name; a timing cache tells none."""
    choices = (Choice("conv", "0x1", "0x2", ("half:1",), ("half:1",), ("/Conv",), 0.5, "0x3"), Choice("b", "k", ""))
    with tempfile.TemporaryDirectory() as folder:
        save_record(TacticRecord("tensorrt:precision=fp16", choices), Path(folder) / "t.json")
        record = (Path(folder) / "t.json").read_bytes()
    replay = {"replay": {"conv1": ALGORITHM, "conv2": ALGORITHM}, "polygraphy_class": "TacticReplayData"}
    cache = b"ptrt" + random.Random(0).randbytes(400)
    return {
        "record.json": record, "replay.json": json.dumps(replay).encode(), "build.log": LOG.encode(),
        "timing.cache": cache,
    }  # fmt: skip


def tactics(seed):
    """Return the name of a file of tactics, and its bytes with a mutation."""
    rng = random.Random(seed)
    name = rng.choice(sorted(tactic_files()))
    return name, mutated_file(name, tactic_files()[name], rng)


def check_replay(seed, bound=BOUND):
    """Return the bytes of a mutated replay of checks: Polygraphy's, ours with a checksum that fits, or any."""
    rng = random.Random(seed)
    checks = {f"_N{number}": {**CHECK, "iteration_info": {"iteration": number}} for number in range(3)}
    if rng.random() < 0.5:
        checks = {f"{key}_outputs": value for key, value in checks.items()}
    changed = mutated_tree(checks, rng) if rng.random() < 0.9 else checks
    if not isinstance(changed, dict) or rng.random() < 0.3:
        return json.dumps(changed).encode()
    sealed = {"format": FORMAT, "bound_to": bound, "crc32": zlib.crc32(json.dumps(changed, sort_keys=True).encode())}
    data = json.dumps({BINDING: sealed, **changed}).encode()
    return mutated_bytes(data, rng) if rng.random() < 0.2 else data


@functools.cache
def output_files():
    """Return the bytes of saved outputs of the model ``mlp`` in every format, by path."""
    tensors = {"y": np.arange(4, dtype=np.float32).reshape(2, 2)}
    found = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name in ("y.npz", "y.safetensors", "y.json", "y.store", "test_data_set_0", "npys"):
            wanted = DataFormat.NPY if name == "npys" else None
            save(folder / name, [("engine", [Iteration(tensors)])], kind=Kind.OUTPUTS, wanted=wanted)
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                found[str(path.relative_to(folder))] = path.read_bytes()
    return {**found, "y.pt": _archive(dict.fromkeys(TORCH_SAVED, b"\x80\x02}q\x00."))}


def outputs(seed):
    """Return the path of saved outputs, and files by path, one of them mutated."""
    rng = random.Random(seed)
    path = rng.choice(sorted(output_files()))
    top = path.split("/")[0]
    files = {name: data for name, data in output_files().items() if name.split("/")[0] == top}
    files[path] = mutated_file(path, files[path], rng)
    return top, files


@functools.cache
def _batch():
    import torch

    target = io.BytesIO()
    torch.save([{"x": torch.arange(8.0).reshape(2, 4)}, {"x": torch.ones(2, 4)}], target)
    return target.getvalue()


def batch(seed):
    """Return what ``torch.save`` wrote, a member of the archive or the whole of it mutated."""
    rng = random.Random(seed)
    if rng.random() < 0.3:
        return mutated_bytes(_batch(), rng)
    with zipfile.ZipFile(io.BytesIO(_batch())) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    name = rng.choice(sorted(members))
    change = rng.randrange(4)
    if change == 0:
        del members[name]
    elif change == 1:
        members[name + rng.choice(["/../x", "x", "\n"])] = members.pop(name)
    else:
        members[name] = mutated_bytes(members[name], rng)
    return _archive(members)


def _archive(members):
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as file:
        for name, content in members.items():
            file.writestr(f"y/{name}" if "/" not in name else name, content)
    return target.getvalue()


def pack(files, seed):
    """Return the path of a file of a repro pack, and all files with a change of that: mutated, or gone.

    Args:
        files: Content by path.
        seed: Which change.
    """
    rng = random.Random(seed)
    inside = sorted(name for name in files if "_repro/" in name)
    name = rng.choice(inside)
    changed = {**files, name: mutated_file(name, files[name], rng)}
    if rng.random() < 0.2:
        del changed[name]
    return name, changed

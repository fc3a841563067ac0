"""Whatever became of files that runs leave (tactics, replays, outputs, batches, packs), they are taken or told."""

import importlib.util
import traceback

import pytest
from hypothesis import given

from hostile import mutated_files, recorded
from hostile.command_lines import COMPATIBLE, any_command
from hostile.originals import data_files, model_files
from hostile.tally import SEEDS, fuzzed
from tensortriage.errors import TriageError
from tensortriage.runs.analyses.tactics import features, load_record
from tensortriage.runs.commands.replay import load_replay
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec
from tensortriage_builds.tactic_diff import diff_tactics
from tensortriage_torch.batches import torch_feeds

OUTPUTS = (
    ["run", "m.onnx", "--target", "onnxruntime", "--inputs", "f.npz", "--load-outputs", "FILE"],
    ["run", "--load-outputs", "FILE", "FILE", "--json"],
    ["inspect", "data", "FILE", "--show-values"],
)
TACTICS = (
    ["inspect", "tactics", "FILE"],
    ["inspect", "diff-tactics", "--good", "FILE", "--bad", "record.json"],
    ["run", "m.onnx", "--target", "tensorrt:load_tactics=FILE"],
    ["run", "m.onnx", "--target", "tensorrt:timing_cache=FILE"],
)
REPLAYS = (
    ["debug", "reduce", "m.onnx", "-o", "o.onnx", "--load-debug-replay", "r.json", "--check", "false"],
    ["polygraphy", "debug", "reduce", "m.onnx", "-o", "o.onnx", "--load-debug-replay", "r.json", "--check", "false"],
)
BATCHED = ValueSpec("x", DType.FLOAT, (None, 4))
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
FAULTY = "from tensortriage_testing import FaultyEngine\nclass Engine(FaultyEngine): pass\n"
REDUCE = ["debug", "reduce", "m.onnx", "-o", "r.onnx", "--target", "script:faulty.py,kind=scale,node=add_h2",
          "--inputs", "f.npz"]  # fmt: skip
PACKS = (
    REDUCE,
    ["run", "r_repro/model.onnx", "--target", "onnxruntime", "--inputs", "r_repro/test_data_set_0",
     "--load-outputs", "r_repro/test_data_set_0"],
    ["diagnose", "r_repro/model.onnx", "--target", "emulate:precision=fp16", "--inputs", "r_repro/test_data_set_0"],
    ["check", "lint", "r_repro/model.onnx"],
)  # fmt: skip
WRITTEN = ("o.onnx", "r.onnx", "r_repro", "triage-case", "polygraphy_debug.onnx", "polygraphy_debug_replay.json",
           "polygraphy_debug_replay_skip_current.json", "polygraphy_artifacts")  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("recorded")


def taken_or_told(tally, kind, seed, read):
    try:
        read()
        tally.add(kind, "taken")
    except TriageError as error:
        tally.add(kind, error.slug)
        if not (error.slug and error.message and error.cure):
            tally.find(seed, f"no slug, message or cure: {error!r}")
    except Exception:
        tally.find(seed, traceback.format_exc())


@given(seed=SEEDS)
@fuzzed(60)
def test_a_mutated_file_of_tactics(folder, tally, seed):
    name, data = recorded.tactics(seed)
    (folder / name).write_bytes(data)
    (folder / "good").write_bytes(recorded.tactic_files()["record.json"])

    def read():
        features(load_record(folder / name).choices, None)
        diff_tactics([folder / "good"], [folder / name])

    taken_or_told(tally, f"tactics: {name}", seed, read)


@given(seed=SEEDS)
@fuzzed(60)
def test_a_mutated_replay_of_checks(folder, tally, seed):
    (folder / "r.json").write_bytes(recorded.check_replay(seed))
    taken_or_told(tally, "replay", seed, lambda: load_replay(folder / "r.json", recorded.BOUND, unbound=True))


def ask(commands, tally, seed, kind, words, files, named=WRITTEN):
    ended = commands.run(words, {"m.onnx": model_files()["mlp"], "f.npz": data_files()["f.npz"], **files})
    tally.add(f"{kind} command", " ".join(words[:2]), ended.slug)
    if faults := ended.faults(named):
        tally.find(seed, f"{sorted(files)}: triage {' '.join(words)}: {faults}\n{ended.err[-3000:]}")


def about(words, file):
    return [word.replace("FILE", file) for word in words]


@given(seed=SEEDS)
@fuzzed(4)
def test_a_command_about_tactics(commands, tally, seed):
    name, data = recorded.tactics(seed)
    files = {"record.json": recorded.tactic_files()["record.json"], name: data}
    ask(commands, tally, seed, "tactics", about(TACTICS[seed % len(TACTICS)], name), files, (*WRITTEN, name))


@given(seed=SEEDS)
@fuzzed(4)
def test_a_command_about_a_replay(commands, tally, seed):
    words = REPLAYS[seed % len(REPLAYS)]
    ask(commands, tally, seed, "replay", words, {"r.json": recorded.check_replay(seed)})


@given(seed=SEEDS)
@fuzzed(6)
def test_a_command_about_saved_outputs(commands, tally, seed):
    path, files = recorded.outputs(seed)
    ask(commands, tally, seed, "outputs", about(OUTPUTS[seed % len(OUTPUTS)], path), files)


@needs_torch
@given(seed=SEEDS)
@fuzzed(4)
def test_a_mutated_batch(folder, tally, seed):
    """The worker that reads them lives on, so PyTorch is loaded once."""
    (folder / "b.pt").write_bytes(recorded.batch(seed))
    taken_or_told(tally, "batch", seed, lambda: list(torch_feeds(folder / "b.pt", [BATCHED])))


@needs_torch
@given(seed=SEEDS)
@fuzzed(1)
def test_a_command_about_a_batch(commands, tally, seed):
    words = ["run", "m.onnx", "--target", "onnxruntime", "--inputs", "b.pt"]
    ask(commands, tally, seed, "batch", words, {"b.pt": recorded.batch(seed)})


@pytest.fixture(scope="module")
def pack_files(tmp_path_factory):
    """Return the files of a repro pack, and of the case next to it, by path."""
    from running_cli import triage

    place = tmp_path_factory.mktemp("pack")
    (place / "m.onnx").write_bytes(model_files()["mlp"])
    (place / "f.npz").write_bytes(data_files()["f.npz"])
    (place / "faulty.py").write_text(FAULTY)
    done = triage(*REDUCE, cwd=place)
    assert done.returncode == 0, done.stderr
    files = {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}
    assert any(name.startswith("r_repro/") for name in files)
    return files


@pytest.mark.lengthy
@given(seed=SEEDS)
@fuzzed(4)
def test_a_command_about_a_pack(commands, tally, pack_files, seed):
    _, files = recorded.pack(pack_files, seed)
    ask(commands, tally, seed, "pack", PACKS[seed % len(PACKS)], files)


@given(seed=SEEDS)
@fuzzed(10)
def test_any_command_line_of_polygraphy(commands, tally, seed):
    words = ["polygraphy", *any_command(seed, compatible=True)]
    named = {word.split("/")[0] for word in words}
    ask(commands, tally, seed, "polygraphy", words, {}, (*named, *WRITTEN))


@given(seed=SEEDS)
@fuzzed(5)
def test_a_command_of_polygraphy_about_a_mutated_model(commands, tally, seed):
    _, data = mutated_files.model(seed)
    ask(commands, tally, seed, "polygraphy", COMPATIBLE[seed % len(COMPATIBLE)], {"m.onnx": data}, (*WRITTEN, "o.json"))

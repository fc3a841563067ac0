"""Are healthy reruns of a baseline silent, and is 1 % in one op found, with the op? Is what changed told as that?

    triage engines install onnxruntime==1.22.0
    python bench/baselines.py healthy --folder work --other onnxruntime:worker=PYTHON
    python bench/baselines.py planted --folder work --count 50
    python bench/baselines.py told --folder work --other onnxruntime:worker=PYTHON
    python bench/baselines.py twice --folder work

Baselines of five networks are saved once in the folder. `healthy` checks them on other thread counts, optimization
levels and releases. `planted` makes one op of ONNX Runtime 1 % too large, at nodes chosen at random among those at
which that moves an output by 1e-5 or more, which is found out without the tool. `told` changes a weight, the data, or
the release. `twice` checks 20 models two times.
"""

import argparse
import random
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from tensortriage_fleet.baseline.request import BaselineRequest
from tensortriage_fleet.baseline.result import BaselineEntry, BaselineResult, EntryOutcome
from tensortriage_fleet.baseline.study import CHECK, SAVE, run_baselines
from tensortriage_testing import FaultyEngine, conv_net, encoder, feed_for, save_model

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
ENGINE = "from tensortriage_testing import FaultyEngine\nclass Engine(FaultyEngine):\n    pass\n"
HEALTHY = ("onnxruntime", "openvino:precision=fp32")
SCRIPT = "script:faulty.py"
RERUNS = (
    "onnxruntime:threads=1", "onnxruntime:threads=3", "onnxruntime:optimization=basic", "onnxruntime:inter_threads=2",
    "openvino:precision=fp32,threads=1", "openvino:precision=fp32,threads=3",
)  # fmt: skip
NO_PLACE = ("Constant", "Shape", "Gather", "Cast", "Unsqueeze", "Concat")
"""What computes sizes as well, which 1 % makes others."""
VISIBLE = 1e-5
MODELS = 20


def main() -> None:
    """Run a part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("healthy", "planted", "told", "twice"))
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--other", nargs="*", default=[], help="engines of other releases")
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=2)
    words = parser.parse_args()
    {"healthy": healthy, "planted": planted, "told": told, "twice": twice}[words.part](words)


def healthy(words: argparse.Namespace) -> None:
    """Check on other threads, levels and releases."""
    folder = laid_out(words.folder)
    asked(SAVE, folder, HEALTHY, words.jobs)
    entries = [
        entry for target in (*RERUNS, *words.other) for entry in asked(CHECK, folder, [target], words.jobs).entries
    ]
    silent = sum(entry.outcome is EntryOutcome.SAME for entry in entries)
    for entry in entries:
        print(
            entry.outcome.value, entry.model, entry.target, *(f"{each.what}: {each.sentence}" for each in entry.changes)
        )
    print(f"healthy: {silent} of {len(entries)} silent")


def planted(words: argparse.Namespace) -> None:
    """Plant 1 % at one op after the other."""
    folder = laid_out(words.folder)
    asked(SAVE, folder, [SCRIPT], words.jobs)
    count = found = named = 0
    for model, node in visible(folder):
        if count == words.count:
            break
        count += 1
        target = f"{SCRIPT},kind=scale,node={node},amount=1.01"
        (entry,) = asked(CHECK, folder, [target], words.jobs, folder / "models" / model).entries
        culprit = entry.verdict.culprits[0] if entry.verdict and entry.verdict.culprits else ""
        found += entry.outcome is EntryOutcome.CHANGED
        named += f"'{node}'" in culprit
        print(entry.outcome.value, model, node, "->", culprit, flush=True)
    print(f"planted: {found} of {count} found, the op in {named}")


def told(words: argparse.Namespace) -> None:
    """Change one thing, and print what is said to have changed."""
    folder = laid_out(words.folder)
    asked(SAVE, folder, HEALTHY, words.jobs)
    for model in sorted((folder / "models").glob("*.onnx")):
        with tempfile.TemporaryDirectory() as place:
            copy = Path(place) / "work"
            shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("triage-*"))
            for what in ("model", "data", "version"):
                path = copy / "models" / model.name
                shutil.copy(folder / "models" / model.name, path)
                shutil.copy(model.with_suffix(".npz"), path.with_suffix(".npz"))
                target = change(what, path, words.other)
                entries = asked(CHECK, copy, [target], words.jobs, path).entries
                print(what, model.name, words_of(entries[0]), flush=True)


def change(what: str, path: Path, others: Sequence[str]) -> str:
    """Change a model or its data in place, and return the engine to check on."""
    if what == "model":
        proto = onnx.load(path)
        weight = max(
            (each for each in proto.graph.initializer if each.data_type == 1), key=lambda each: len(each.raw_data)
        )
        weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight) * np.float32(1.01), weight.name))
        onnx.save(proto, path)
    elif what == "data":
        with np.load(path.with_suffix(".npz")) as data:
            arrays = {name: np.flip(array, 0).copy() if len(array) > 1 else array + 1 for name, array in data.items()}
        np.savez(path.with_suffix(".npz"), **arrays)
    return next(iter(others), HEALTHY[0]) if what == "version" else HEALTHY[0]


def words_of(entry: BaselineEntry) -> str:
    """Return outcome and changes."""
    return f"{entry.outcome.value}: " + "; ".join(f"{each.what}: {each.sentence}" for each in entry.changes)


def twice(words: argparse.Namespace) -> None:
    """Save 20 models, and check them two times."""
    folder = words.folder / "twenty"
    (folder / "models").mkdir(parents=True, exist_ok=True)
    for number in range(MODELS):
        proto = onnx.load(EXAMPLES / "digits_cnn.onnx")
        weight = proto.graph.initializer[0]
        weight.CopyFrom(
            numpy_helper.from_array(numpy_helper.to_array(weight) * np.float32(1 + number / 100), weight.name)
        )
        onnx.save(proto, folder / "models" / f"net{number}.onnx")
        shutil.copy(EXAMPLES / "digits.npz", folder / "models" / f"net{number}.npz")
    asked(SAVE, folder, HEALTHY[:1], words.jobs)
    for _ in range(2):
        started = time.monotonic()
        result = asked(CHECK, folder, [], words.jobs)
        kept = sum(entry.kept for entry in result.entries)
        print(
            f"check: {time.monotonic() - started:.1f} s, {kept} of {len(result.entries)} known, exit {result.exit_code}"
        )


def laid_out(folder: Path) -> Path:
    """Return the folder, with models, data and the faulty engine in it."""
    models = folder.resolve() / "models"
    models.mkdir(parents=True, exist_ok=True)
    (folder / "faulty.py").write_text(ENGINE)
    for name in ("digits_cnn", "digits_vit"):
        shutil.copy(EXAMPLES / f"{name}.onnx", models)
        shutil.copy(EXAMPLES / "digits.npz", models / f"{name}.npz")
    made = {
        "conv_net": conv_net(blocks=2),
        "encoder": encoder(layers=2, width=64, heads=4, tokens=32, batch=2),
        "encoder_ln": encoder(layers=2, width=64, heads=4, tokens=32, batch=2, decomposed_layernorm=False),
    }
    for name, proto in made.items():
        save_model(proto, models / f"{name}.onnx")
        np.savez(models / f"{name}.npz", **feed_for(proto))
    return folder.resolve()


def visible(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield models and nodes, in random order, at which 1 % moves an output."""
    paths = sorted((folder / "models").glob("*.onnx"))
    places = [
        (path, node.name) for path in paths for node in onnx.load(path).graph.node if node.op_type not in NO_PLACE
    ]
    random.Random(1).shuffle(places)
    right = {}
    for path, node in places:
        with np.load(path.with_suffix(".npz")) as data:
            feed = dict(data)
        if path not in right:
            right[path] = FaultyEngine().compile(path, {}).run(feed)
        wrong = FaultyEngine().compile(path, {"kind": "scale", "node": node, "amount": "1.01"}).run(feed)
        apart = (np.linalg.norm(wrong[name] - array) / np.linalg.norm(array) for name, array in right[path].items())
        if max(apart) >= VISIBLE:
            yield path.name, node


def asked(command: str, folder: Path, targets: Sequence[str], jobs: int, *paths: Path) -> BaselineResult:
    """Run a command on baselines of the folder."""
    request = BaselineRequest(
        paths=paths or ((folder / "models",) if command == SAVE else ()),
        targets=tuple(each.replace(SCRIPT, f"script:{folder / 'faulty.py'}") for each in targets),
        folder=folder / (".triage-planted" if any(SCRIPT in each for each in targets) else ".triage-baseline"),
        case=folder / "triage-case",
        jobs=jobs,
    )
    return run_baselines(command, request, tell=lambda text: None)


if __name__ == "__main__":
    main()

"""What does it cost to inject the errors of ops into a model, one at a time? For encoders of several sizes.

    python bench/influence.py --layers 2 12

Prints, per number of values made replaceable in one model, the time to edit, build and run it (wall and CPU), next to a
run of the model as it is. `tensortriage.diagnose.measurements.local_errors.influences` chooses its group size by this.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.model.transforms.mark_outputs import (
    INJECT_PREFIX,
    USE_PREFIX,
    inject,
    mark_outputs,
    markable,
    select_outputs,
)
from tensortriage.values.spec import ValueSpec
from tensortriage_testing import encoder, feed_for, save_model

OPTIONS = {"optimization": "none"}
RUNS = 12


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, nargs="+", default=[2, 12])
    parser.add_argument("--groups", type=int, nargs="+", default=[1, 8, 32, 128])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        for layers in arguments.layers:
            message = encoder(layers=layers, width=128, heads=4, tokens=64, batch=2)
            model = Model.load(save_model(message, Path(name) / "model.onnx"))
            for line in measured(model, feed_for(message), arguments.groups, Path(name)):
                print(line, flush=True)


def measured(model: Model, feed: Mapping[str, np.ndarray], groups: list[int], folder: Path) -> Iterator[str]:
    """Yield a line per group size."""
    engine = OnnxRuntimeEngine()
    marked = mark_outputs(model, markable(model)).save(folder / "marked.onnx")
    golden = {key: np.array(array) for key, array in engine.compile(marked, OPTIONS).run(feed).items()}
    specs = value_specs(model, {key: ValueSpec.of(key, array) for key, array in {**golden, **feed}.items()})
    values = [value for value in markable(model) if golden[value].dtype == np.float32]
    plain = engine.compile(model.save(folder / "plain.onnx"), OPTIONS)
    wall, cpu = clocked(lambda: plain.run(feed))
    size = sum(array.nbytes for array in golden.values()) / 2**20
    yield f"{len(model.graph.nodes)} nodes, {size:.0f} MiB of tensors: a run takes {wall:.1f} ms, CPU {cpu:.1f} ms"
    for count in groups:
        chosen = values[:: max(1, len(values) // count)][:count]
        started = time.perf_counter()
        edited = select_outputs(inject(model, chosen, specs=specs), [spec.name for spec in model.outputs])
        path = edited.save(folder / "injected.onnx")
        editing, started = time.perf_counter() - started, time.perf_counter()
        session = engine.compile(path, OPTIONS)
        building = time.perf_counter() - started
        off = {INJECT_PREFIX + v: np.zeros((1,) * golden[v].ndim, np.float32) for v in chosen}
        off |= {USE_PREFIX + v: np.array(False) for v in chosen}
        one = {INJECT_PREFIX + chosen[0]: golden[chosen[0]] * np.float32(1.01), USE_PREFIX + chosen[0]: np.array(True)}
        fed = {**feed, **off, **one}
        wall, cpu = clocked(lambda session=session, fed=fed: session.run(fed))
        yield f"  {count:4} values: edited {editing:.2f} s, built {building:.2f} s, run {wall:.1f} ms, CPU {cpu:.1f} ms"
        session.close()


def clocked(run) -> tuple[float, float]:
    """Return the milliseconds of one of several runs: wall (the fastest) and CPU (the mean)."""
    run()
    walls, cpu = [], time.process_time()
    for _ in range(RUNS):
        started = time.perf_counter()
        run()
        walls.append(time.perf_counter() - started)
    return min(walls) * 1e3, (time.process_time() - cpu) / RUNS * 1e3


if __name__ == "__main__":
    main()

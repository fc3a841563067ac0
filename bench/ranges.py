"""What does a range scan cost, next to one run of the reference in float64? For an encoder and a convolutional network.

python bench/ranges.py
"""

import tempfile
import time
from pathlib import Path

import numpy as np

from tensortriage.engines.float64.engine import Float64Engine
from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine
from tensortriage.model.model import Model
from tensortriage.model.transforms.mark_outputs import mark_outputs, markable
from tensortriage.runs.ranges import range_scan
from tensortriage.values.store import MemoryStore
from tensortriage_testing import conv_net, encoder, feed_for, save_model

MODELS = {
    "encoder, 12 layers": lambda: encoder(layers=12, width=128, heads=4, tokens=64, batch=2),
    "conv_net, 8 blocks": lambda: conv_net(blocks=8),
}


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        for title, build in MODELS.items():
            message = build()
            path = save_model(message, Path(name) / "model.onnx")
            model, feed = Model.load(path), feed_for(message)
            marked = mark_outputs(model, markable(model)).save(Path(name) / "marked.onnx")
            found = OnnxRuntimeEngine().compile(marked, {"optimization": "none"}).run(feed)
            golden = MemoryStore({key: np.array(array) for key, array in found.items()})
            started, cpu = time.perf_counter(), time.process_time()
            Float64Engine().compile(path, {}).run(feed)
            exact, exact_cpu = time.perf_counter() - started, time.process_time() - cpu
            started, cpu = time.perf_counter(), time.process_time()
            rows = range_scan(model, golden, feed)
            wall, used = time.perf_counter() - started, time.process_time() - cpu
            print(f"{title}: {len(rows)} tensors, scan {wall:.2f} s, CPU {used:.2f} s; "
                  f"float64 run {exact:.2f} s, CPU {exact_cpu:.2f} s; ratio of CPU {used / exact_cpu:.2f}")  # fmt: skip


if __name__ == "__main__":
    main()

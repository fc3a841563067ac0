"""What `run` adds to saved outputs that are beyond their limits."""

from pathlib import Path

import numpy as np

import models
from tensortriage.api import CompareRequest, FeedRequest
from tensortriage_feeds.check.after_run import told

NET = """<ir_version: 8, opset_import: ["": 17]>
g (float[2,6] x) => (float[2,6] y) { [act] a = Tanh(x) [y] y = Exp(a) }"""
X = np.random.default_rng(1).standard_normal((2, 6)).astype(np.float32)


def lines_of(tmp_path: Path, theirs):
    model, inputs, saved = (tmp_path / name for name in ("m.onnx", "x.npz", "y.npz"))
    models.write(model, NET)
    np.savez(inputs, x=X)
    np.savez(saved, y=theirs)
    return list(told(CompareRequest(model=model, feeding=FeedRequest(paths=(str(inputs),))), model, [saved]))


def test_the_input_behind_the_outputs_is_told_with_its_cure_and_the_command(tmp_path):
    *found, command = lines_of(tmp_path, np.exp(np.tanh(X / 255)))
    assert "255" in found[0]
    assert any(line.startswith("cure: ") for line in found)
    assert command.startswith("  next: triage check feed ")


def test_outputs_of_these_inputs_get_the_command_alone(tmp_path):
    (command,) = lines_of(tmp_path, np.exp(np.tanh(X)))
    assert command.startswith("  next: triage check feed ")

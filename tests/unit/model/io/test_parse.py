"""A model file parsed without onnx_ir; what is refused, and how, is tested through `Model.load` in test_reading."""

import subprocess
import sys

import numpy as np
import onnx

import models
from tensortriage.model.io import parse
from tensortriage.model.io.parse import read_message


def test_small_files_keep_their_weights(tmp_path):
    proto = models.proto("g (float[2] x) => (float[2] y) <float[2] w = {1.0, 2.0}> { y = Add(x, w) }")
    found = read_message(models.write(tmp_path / "m.onnx", proto))
    assert found.proto == proto
    assert not found.places


def test_large_weights_stay_in_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(parse, "LARGE_FILE_BYTES", 1)
    weight = np.arange(8192, dtype=np.float32)
    proto = models.proto("g (float[8192] x) => (float[8192] y) <float[2] s = {1.0, 2.0}> { y = Add(x, w) }")
    proto.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    path = models.write(tmp_path / "m.onnx", proto)
    found = read_message(path)
    ((index, (offset, length)),) = found.places.items()
    assert found.proto.graph.initializer[index].name == "w"
    assert not found.proto.graph.initializer[index].raw_data
    assert path.read_bytes()[offset : offset + length] == weight.tobytes()


def test_onnx_ir_is_not_imported():
    code = "import sys, tensortriage.model.io.parse; sys.exit('onnx_ir' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

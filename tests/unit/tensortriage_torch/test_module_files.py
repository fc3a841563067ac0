"""What a pack says of a PyTorch module, and which of its two questions decides; PyTorch itself is not needed here."""

import dataclasses
import json

import numpy as np
import onnx
import pytest
from onnx import parser

from tensortriage.engines.base import Limits
from tensortriage.engines.spec import EngineSpec
from tensortriage.model.model import Model
from tensortriage.reduce.failure import Failure, FailureKind
from tensortriage.reduce.repro.repro_case import Repro, ReproSample
from tensortriage.reduce.repro.repro_pack import write_pack
from tensortriage.reduce.repro.repro_texts import TextFacts
from tensortriage_torch.cut_module import CutModule
from tensortriage_torch.module_files import module_beside

FAILURE = Failure(FailureKind.WRONG, "y", 0.5, "y", 0.5)
CUT = CutModule(
    code="def forward(self, x):\n    w = self.w\n    return (torch.ops.aten.mul.Tensor(x, w),)",
    weights={"w": np.full(1, 2, np.float32)},
    inputs={"x": np.ones(2, np.float32)},
    outputs={"mul": np.full(2, 2, np.float32)},
    operators=("aten.mul.Tensor",),
    dtypes={"weight/w": "bfloat16", "input/x": "float32", "output/mul": "float32"},
    versions={"torch": "2.13.0"},
)


def beside(anew, told=""):
    return dataclasses.replace(module_beside(CUT, "block.scale (Scale, net.py:7)", "dynamo"), anew=anew, told=told)


def written(folder, module, *, exported_wrong=""):
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) <float[1] w = {3}> { y = Mul(x, w) }'
    onnx.save(parser.parse_model(text), folder / "source.onnx")
    sample = ReproSample({"x": np.ones(2, np.float32)}, {"y": np.full(2, 2, np.float32)})
    pack = Repro(Model.load(folder / "source.onnx"), (sample,))
    facts = TextFacts(EngineSpec.parse("onnxruntime"), {}, FAILURE, exported_wrong, module)
    write_pack(folder / "repro", pack, facts, limits=Limits())
    return {path.name: path.read_text() for path in (folder / "repro").glob("*.[mp][dy]")}


@pytest.mark.parametrize(
    ("anew", "exported_wrong", "judged", "issue"),
    [
        (True, "block.scale: wrong", "('anew',)", True),  # only a mended exporter makes it right
        (False, "block.scale: wrong", "('file',)", False),  # no exporter here is to blame
        (None, "block.scale: wrong", "('file',)", True),
        (True, "", "('file', 'anew')", False),
        (False, "", "('file',)", False),
    ],
)
def test_who_decides_and_who_is_told(tmp_path, anew, exported_wrong, judged, issue):
    files = written(tmp_path, beside(anew), exported_wrong=exported_wrong)
    assert f"judged = {judged}" in files["repro.py"]
    assert ("issue.md" in files) == issue
    for name in ("repro.py", "module.py"):
        compile(files[name], name, "exec")


def test_a_pack_says_what_of_the_network_is_in_it(tmp_path):
    files = written(tmp_path, beside(True, "'mul' is wrong by 0.5"), exported_wrong="block.scale: wrong")
    for text in ("aten.mul.Tensor", "w float32 [1]", "x float32 [2]", "block.scale (Scale, net.py:7)"):
        assert text in files["README.md"]
    assert "y = Mul(x, 3.0)" in files["issue.md"]
    assert "torch.ops.aten.mul.Tensor(x, w)" in files["issue.md"]
    assert "- torch 2.13.0" in files["issue.md"]
    assert "TYPES = {'w': 'bfloat16'}" in files["module.py"]


def test_weights_are_plain_safetensors(tmp_path):
    """The format: length of the header in 8 bytes, header in JSON with offsets into the data, data."""
    written(tmp_path, beside(True))
    data = (tmp_path / "repro/weights.safetensors").read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    entry = json.loads(data[8:start])["w"]
    begin, end = entry["data_offsets"]
    assert (entry["dtype"], entry["shape"]) == ("F32", [1])
    assert np.frombuffer(data[start + begin : start + end], "<f4").tolist() == [2.0]

"""A finished reduction as the document that others read."""

import json
import math

import pytest

from tensortriage.errors import StoreError
from tensortriage.model.provenance.origin import NodeOrigin
from tensortriage.reduce.failure import Failure, FailureKind
from tensortriage.reduce.reduction_result import KeptNode, Opened, OtherFailure, Reduction, Shrunk
from tensortriage.values.serial import dump, load

FAILURE = Failure(FailureKind.WRONG, "y", 0.5, "z", math.inf, "feed", 2.0, influences={"feed": {"z": math.inf}})
SMALL = Reduction(
    asked="check", command="triage debug reduce m.onnx", model="m.onnx", sha256="00", nodes_before=3,
    kept=(KeptNode("mul", "Mul", ("y",)),), minimality="one-minimal", block_items=0, stop="finished", checks=5,
    cache_hits=0, candidates=4, seconds=1.5, failed_runs=3, runs=3, confidence=None, signature="exit code 1",
)  # fmt: skip
WHOLE = Reduction(
    asked="engines", command="", model="m.onnx", sha256="00", nodes_before=9,
    kept=(KeptNode("mul", "Mul", ("y",), "pass", NodeOrigin("block.mul", "Linear", "net.py", 3)),),
    minimality="block-minimal", block_items=2, stop="interrupted", checks=5, cache_hits=1, candidates=4, seconds=1.5,
    failed_runs=3, runs=4, confidence=0.9, signature="wrong ~1e-1", failure=FAILURE, local=FAILURE, verified=False,
    shrunk=(Shrunk("sizes", True, "8 -> 1"),), opened=(Opened("if", "If", "then_branch", False, "it is needed"),),
    others=(OtherFailure(2, "exit code 7", "another", "others/0.onnx"),), files={"result": "r.onnx"},
)  # fmt: skip


@pytest.mark.parametrize("reduction", [SMALL, WHOLE])
def test_it_is_read_as_it_was_written(reduction, tmp_path):
    dump(reduction, tmp_path / "reduction.json")
    assert load(tmp_path / "reduction.json", Reduction) == reduction


def test_what_was_not_asked_is_told_apart_from_no():
    assert (SMALL.verified, SMALL.failure, SMALL.local) == (None, None, None)
    assert (SMALL.shrunk, SMALL.opened, SMALL.others, SMALL.files) == ((), (), (), {})


def test_another_version_is_refused(tmp_path):
    path = tmp_path / "reduction.json"
    dump(SMALL, path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": "tensortriage.reduction/0"}))
    with pytest.raises(StoreError) as caught:
        load(path, Reduction)
    assert caught.value.slug == "format-unknown"

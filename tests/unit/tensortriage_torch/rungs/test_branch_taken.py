"""Which branch of Python a file has, by the modules that its nodes are named after and those that the network runs."""

import pytest

from models import parse
from tensortriage_torch.premises import read_premises
from tensortriage_torch.rungs.branch_taken import branch_taken

TEXT = """g (float[2,4] x) => (float[2,4] y) {
    ["/one/MatMul"] a = MatMul(x, w) ["/act/Relu"] b = Relu(a) ["/three/MatMul"] y = MatMul(b, w) }"""
PATHS = ["one", "act", "two", "three", "body", "body.four"]


def premises(ran, weighted=("one", "two", "three")):
    told = {"again": {}, "calls": {}, "paths": PATHS, "shapes": {f"{name}.weight": (4, 4) for name in weighted}}
    return read_premises({**told, "ends": {"ran": ran}}, {})


def test_a_module_that_runs_in_the_place_of_the_file_s():
    found = branch_taken(parse(TEXT).graph, premises(["one", "act", "two"]))
    assert found is not None
    assert (found.kept, found.left_out) == (("three",), ("two",))
    assert found.words.startswith("on these inputs PyTorch runs 'two' and not 'three', which the file has in its place")


@pytest.mark.parametrize(
    ("ran", "weighted"),
    [
        (["one", "act", "three"], ("one", "two", "three")),  # the file's branch
        (["one", "act"], ("one", "two", "three")),  # a fused kernel calls no modules
        (["one", "act", "three", "two"], ("one", "two", "three")),  # folded into a constant
        (["one", "act", "two"], ("one", "three")),  # without weights: another activation
        ([], ("one", "two", "three")),
    ],
)
def test_nothing_is_said_where_one_side_alone_has_others(ran, weighted):
    assert branch_taken(parse(TEXT).graph, premises(ran, weighted)) is None


def test_a_file_without_names_of_modules():
    text = TEXT.replace("/one/", "node_").replace("/act/", "node_").replace("/three/", "other_")
    assert branch_taken(parse(text).graph, premises(["one", "act", "two"])) is None

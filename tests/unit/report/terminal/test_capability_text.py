"""What an engine can build, as text."""

import dataclasses

from tensortriage.report.terminal.capability_text import capability_lines, groups
from tensortriage.report.terminal.lines import plain
from tensortriage.runs.capabilities.capability import Capability, NodeAnswer, Piece, Support


def texts(lines):
    return list(map(plain, lines))


def refused(name, message, outcome="build-failed"):
    return NodeAnswer((name,), ("Foo",), Support.UNSUPPORTED, outcome, message)


FINE = NodeAnswer(("a",), ("Relu",), Support.SUPPORTED, "ok", "")
PIECES = (
    Piece(0, 0, ("a",), Support.SUPPORTED, "ok", ""),
    Piece(1, 3, ("b", "c"), Support.UNSUPPORTED, "build-failed", "no Foo"),
)


def capability(answers=(), pieces=(), **given):
    fields = {"outcome": "build-failed", "message": "no Foo", **given}
    return Capability(
        "m.onnx", "engine", 3, answers=tuple(answers), pieces=tuple(pieces), builds=4, build_seconds=0.5, **fields
    )


def test_a_model_that_builds():
    assert texts(capability_lines(capability(outcome="ok", message=""))) == [
        "engine builds the whole model: 3 nodes (4 builds, 0.5 s)"
    ]


def test_what_is_refused_by_reason():
    answers = [FINE, refused("b", "node b: no Foo"), refused("c/d", "node c/d: no Foo")]
    assert texts(capability_lines(capability(answers, PIECES), folder="out")) == [
        "engine does not build the model: build-failed: no Foo",
        "1 of 3 nodes build by themselves (4 builds, 0.5 s)",
        "  Foo: 2 nodes: build-failed",
        "      node b: no Foo",
        "      b, c/d",
        "pieces (2)",
        "  supported    0-0   1 node  a       out/supported_subgraph-nodes-0-0.onnx",
        "  unsupported  1-3  2 nodes  b to c  out/unsupported_subgraph-nodes-1-3.onnx",
    ]


def test_only_combinations_fail():
    lines = texts(capability_lines(capability([FINE])))
    assert lines[-1] == "the fault is in how they are combined: --with-partitioning finds the pieces that build"


def test_grouping_ignores_names_and_addresses_only():
    answers = [
        refused("b", "bad b at 0x7f00"),
        refused("Conv", "bad Conv at 0x7f11"),
        refused("e", "bad bee"),
        refused("f", "bad f at 0x1", "engine-crash"),
    ]
    assert [len(group) for group in groups(answers)] == [2, 1, 1]


def test_modules_of_what_is_refused():
    label = "block.act (Foo, net.py:7)"
    answers = [FINE, *(dataclasses.replace(refused(name, "no Foo"), modules=(label,)) for name in "bc")]
    assert "      of block.act (Foo, net.py:7)" in texts(capability_lines(capability(answers)))

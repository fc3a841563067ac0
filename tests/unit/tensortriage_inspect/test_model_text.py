import dataclasses

import pytest

from tensortriage.model.inspect.outline import ValueFacts
from tensortriage.model.inspect.repeated_blocks import RepeatedBlock
from tensortriage.report.terminal.lines import plain
from tensortriage_inspect.model_text import MOST_ROWS, layer_lines, summary_lines, weight_range
from tensortriage_inspect.node_listing import LayerFacts
from tensortriage_inspect.summary import Body, DTypeCount, ExternalFile, FunctionFacts, ModelSummary, OpCount

BLOCK = RepeatedBlock("ff", 3, 4, {"Relu": 1, "Conv": 3}, ("a", "b", "c"), ("net.0", "net.1", "net.2"), True)
SUMMARY = ModelSummary(
    path="m.onnx", file_bytes=2500, name="g", producer="torch 2", ir_version=9, opsets={"ai.onnx": 17, "c": 1},
    inputs=(ValueFacts("x", "float32", ("batch", None, 3)),), outputs=(ValueFacts("y\x1b", "", None),),
    nodes=3, all_nodes=3, ops=(OpCount("Conv", 2, 1200, 4800), OpCount("Relu", 1, 0, 0)), parameters=1200,
    parameter_bytes=4800, initializers=1, dtypes=(DTypeCount("float32", 1, 1200, 4800),), external=(), symbols={},
    unknown_dims=(), bodies=(), functions=(), blocks=(), metadata={},
)  # fmt: skip


def texts(**changes):
    return [plain(line) for line in summary_lines(dataclasses.replace(SUMMARY, **changes))]


def test_a_model_in_lines():
    assert texts() == [
        "m.onnx: graph g, IR 9, by torch 2",
        "  opset       ai.onnx 17, c 1",
        "  nodes       3, 2 operators",
        "  parameters  1,200 in 4.8 kB: float32 4.8 kB",
        "  file        2.5 kB",
        "inputs (1)",
        "  x  float32  [batch, ?, 3]",
        "outputs (1)",
        "  y\\x1b  ?  rank unknown",
        "operators, with the parameters they are the first to compute with",
        "  Conv  2  4.8 kB",
        "  Relu  1",
    ]


def test_what_a_model_may_lack():
    lines = texts(name="", producer="", dtypes=(), inputs=())
    assert lines[0] == "m.onnx: graph (unnamed), IR 9"
    assert lines[3] == "  parameters  1,200 in 4.8 kB: none"
    assert lines[5:7] == ["inputs (0)", "outputs (1)"]


def test_nodes_of_bodies_and_functions_are_counted_apart():
    lines = texts(
        all_nodes=1005, bodies=(Body("if_0", "If", "then_branch", 1, 1),), functions=(FunctionFacts("f", 2, 1),)
    )
    assert lines[2] == "  nodes       3 (1,005 with bodies and functions), 2 operators"
    assert lines[-4:] == ["bodies (1)", "  If  if_0  then_branch  1 node", "functions (1)", "  f  2 nodes  1 call"]


def test_weights_beside_the_model_and_those_that_are_gone():
    files = [ExternalFile(f"w{number}.bin", 1, number * 1000 if number else None) for number in range(4)]
    assert texts(external=tuple(files))[4] == (
        "  file        2.5 kB, weights in w0.bin MISSING, w1.bin 1 kB, w2.bin 2 kB and 1 more"
    )


def test_dynamic_dimensions_and_where_they_are():
    lines = texts(symbols={"batch": ("x[0]", "z[0]")}, unknown_dims=tuple(f"x[{axis}]" for axis in range(5)))
    start = lines.index("dynamic dimensions of the inputs")
    assert lines[start + 1 : start + 3] == ["  batch  x[0], z[0]", "  ?      x[0], x[1], x[2], x[3] and 1 more"]
    assert "dynamic dimensions of the inputs" not in texts()
    assert "  ?  x[1]" in texts(unknown_dims=("x[1]",))


def test_of_many_operators_the_frequent_and_the_heavy_are_listed():
    ops = [OpCount(f"Op{number:02}", 100 - number, number, number) for number in range(20)]
    lines = texts(ops=tuple(ops))
    listed = [line.split()[0] for line in lines if line.startswith("  Op")]
    assert listed == [op.op_type for op in (*ops[:MOST_ROWS], *ops[16:])]
    assert lines[-1] == "  ... and 4 more: --json has them all"


def test_at_most_twelve_values_are_listed():
    lines = texts(inputs=tuple(ValueFacts(f"x{number}", "int64", ()) for number in range(MOST_ROWS + 2)))
    assert f"  x{MOST_ROWS - 1:<2}  int64  []" in lines
    assert lines[lines.index("outputs (1)") - 1] == "  ... and 2 more: --json has them all"


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        ({}, ["  3 x 4 nodes: 3 Conv, 1 Relu", "      from net.0 to net.2"]),
        ({"scopes": ("net", "net", "net")}, ["  3 x 4 nodes: 3 Conv, 1 Relu", "      from a to c"]),
        ({"scopes": ("", "", ""), "first_nodes": ("", "", "c")}, ["  3 x 4 nodes: 3 Conv, 1 Relu"]),
        ({"same_parameter_shapes": False, "op_counts": {f"Op{number}": 9 - number for number in range(9)}},
         ["  3 x 4 nodes, parameters of different shapes: 9 Op0, 8 Op1, 7 Op2, 6 Op3, 5 Op4, 4 Op5, 3 Op6, 3 others",
          "      from net.0 to net.2"]),
    ],
)  # fmt: skip
def test_repeated_blocks_are_told_with_their_ends(changes, lines):
    told = texts(blocks=(dataclasses.replace(BLOCK, **changes),))
    assert told[told.index("repeated blocks") + 1 :] == lines


def test_nodes_are_listed_with_what_they_use_and_make():
    x, y = ValueFacts("x", "float32", (2,)), ValueFacts("y", "", None)
    layers = [
        LayerFacts("", 0, "relu", "Relu", (x, ValueFacts("", "", None)), (y,), {"alpha": "1.0"}),
        LayerFacts("if_3/then_branch", 7, "", "Neg", (y,), (), {}),
    ]
    lines = list(layer_lines(layers, attributes=True))
    assert lines == [
        "node 0  Relu  relu", "  <- x float32 [2]", "  <- (omitted)", "  -> y", "     alpha = 1.0",
        "in if_3/then_branch", "node 7  Neg  (unnamed)", "  <- y",
    ]  # fmt: skip
    assert "     alpha = 1.0" not in list(layer_lines(layers, attributes=False))
    back = list(layer_lines([layers[1], layers[0]], attributes=False))
    assert back[0] == "in if_3/then_branch"
    assert back[3] == "in the main graph"


def test_a_weight_without_numbers_has_no_range():
    assert weight_range(None, None, None) == ""
    assert weight_range(-1.5, 2.0, 0.25) == "min -1.5, max 2, mean 0.25"

"""Which nodes a kernel executes, told from the names of values that an optimizer left."""

import dataclasses

import models
from tensortriage.engines.onnxruntime.node_map import executed_nodes, fused_regions

TEXT = """
    g (float[1, 4, 8, 8] x) => (float[1, 4, 8, 8] y) <float[4, 4, 1, 1] w, float[4] b> {
        [conv] c = Conv(x, w, b)
        [add] a = Add(c, x)
        [relu] r = Relu(a)
        [scale] y = Mul(r, r)
    }"""


@dataclasses.dataclass
class Kernel:
    name: str
    op_type: str
    inputs: tuple
    outputs: tuple
    attributes: dict = dataclasses.field(default_factory=dict)


def executed(*kernels):
    model = models.parse(TEXT)
    graph = model.graph
    return executed_nodes(kernels, graph, {*graph.values, *graph.constants, "x"}, given=("w", "b"))


def test_a_fused_kernel_executes_all_back_to_values_that_others_provide():
    fused = Kernel("fused", "FusedConv", ("x", "w", "b"), ("r",))
    assert executed(fused, Kernel("scale", "Mul", ("r", "r"), ("y",))) == [("conv", "add", "relu"), ("scale",)]


def test_a_kernel_in_blocked_layout_is_known_by_its_name():
    kernels = (
        Kernel("in", "ReorderInput", ("x",), ("reorder",)),
        Kernel("c_nchwc", "Conv", ("reorder", "w", "b", "reorder"), ("made up",), {"activation": "Relu"}),
        Kernel("out", "ReorderOutput", ("made up",), ("r",)),
        Kernel("scale", "Mul", ("r", "r"), ("y",)),
    )
    assert executed(*kernels) == [(), ("conv", "add", "relu"), (), ("scale",)]


def test_a_value_that_nothing_links_to_the_model_has_no_nodes():
    kernels = (Kernel("k1", "Conv", ("x", "w", "b"), ("t1",)), Kernel("k2", "Mul", ("t1", "t1"), ("t2",)))
    assert executed(*kernels) == [(), ()]


def test_the_same_graph_is_a_region_for_each_node():
    model = models.parse(TEXT)
    regions = fused_regions(model, model)
    assert [(region.nodes, region.precision) for region in regions] == [
        ((node.name,), "float32") for node in model.graph.nodes
    ]

"""Engines whose normalizations take other statistics: written by hand in numpy's steps, and not by what is measured.

Each replaces one operator by single steps, of which one is another. Those without words are off in a way that no known
difference is: nothing may be said of them.
"""

from collections.abc import Sequence

import numpy as np
from meanings_cases import X, picture, tokens
from meanings_engines import EngineCase
from reports import normal

AXES = {
    "LayerNormalization": "[-1]", "RMSNormalization": "[-1]", "SimplifiedLayerNormalization": "[-1]",
    "InstanceNormalization": "list(range(2, 4))",
}  # fmt: skip

INSERTING = """
def before(kind, *inputs, **attributes):
    name = f'{node.output[0]}/before{len(made.graph.node)}'
    made.graph.node.insert(list(made.graph.node).index(node), helper.make_node(kind, inputs, [name], **attributes))
    return name
"""
"""Several nodes before one, in the order in which they are written."""
STEPS = (
    INSERTING.replace("{", "{{").replace("}", "}}")
    + """
axes, count = constant(np.array({axes})), {count}
wide = (lambda name: constant(arrays[name].reshape(-1, 1, 1))) if node.op_type == "InstanceNormalization" else str
gains = [wide(name) for name in node.input[1:]]
one, epsilon = constant(np.float32(1)), constant(np.float32({epsilon}))
x = node.input[0]
{centre}
square = before("Mul", x, x)
mean = before("ReduceMean", square, axes, keepdims=1)
{spread}
{root}
even = before("Div", x, root)
gain = gains[0]
{gain}
result = before("Mul", even, gain)
if len(gains) > 1:
    result = before("Add", result, gains[1])
node.op_type, node.input[:] = "Identity", [result]
del node.attribute[:]
"""
)

CENTRED = 'x = before("Sub", x, before("ReduceMean", x, axes, keepdims=1))'
SPREAD = 'some = before("Add", mean, epsilon)'
ROOT = 'root = before("Sqrt", some)'
MOST = 'most = before("ReduceMax", before("Abs", x), axes, keepdims=1)\n'
SCALED = MOST + 'some = before("Add", mean, before("Mul", epsilon, before("Mul", most, most)))'
OUTSIDE = 'root = before("Add", before("Sqrt", mean), epsilon)'
UNBIASED = 'some = before("Add", before("Mul", mean, constant(np.float32(count / (count - 1)))), epsilon)'
TRIMMED = 'lower = before("Clip", square, "", constant(np.float32(2)))\n' + (
    'some = before("Add", before("ReduceMean", lower, axes, keepdims=1), epsilon)'
)


def edit(op: str, **steps: object) -> str:
    """Return Python that writes a normalization in single steps, of which some are other ones."""
    plain = {"centre": "", "spread": SPREAD, "root": ROOT, "gain": ""}
    return STEPS.format(axes=AXES[op], **{**plain, **steps})


ROWS = """n = {op}<axis=-1, epsilon={epsilon}>(c, {gains})
        e = Tanh(n)
        t = Transpose<perm=[0,2,1]>(e)
        q = MatMul(n, t)
        p = Softmax(q)
        d = MatMul(p, e)"""
BLOCK = """k = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(c, u)
        n = InstanceNormalization<epsilon={epsilon}>(k, g, s)
        l = LeakyRelu<alpha=0.2>(n)
        d = Add(l, c)"""
ROW = {"g": 1 + normal(3, 16, scale=0.3), "s": normal(4, 16)}
CHANNEL = {"g": 1 + normal(3, 8, scale=0.3), "s": normal(4, 8), "u": normal(7, 8, 8, 3, 3, scale=0.2)}
SPIKY = {"x": normal(9, 2, 6, 16) * np.exp2(normal(10, 2, 6, 16))}
GROUPS = """k = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(c, u)
        n = GroupNormalization<num_groups=4, epsilon=0.01>(k, g, s)
        d = Sigmoid(n)"""
TURNED = """
order = np.arange(8).reshape({shape}).T.reshape(-1)
back = np.argsort(order)
x = before("Gather", node.input[0], constant(order), axis=1)
ones, zeros = constant(np.ones(8, np.float32)), constant(np.zeros(8, np.float32))
inner = before("GroupNormalization", x, ones, zeros, num_groups=4, epsilon=0.01)
same = before("Gather", inner, constant(back), axis=1)
scaled = before("Mul", same, constant(arrays["g"].reshape(-1, 1, 1)))
result = before("Add", scaled, constant(arrays["s"].reshape(-1, 1, 1)))
node.op_type, node.input[:] = "Identity", [result]
del node.attribute[:]
"""


def _rows(
    op: str, name: str, said: Sequence[str], *, epsilon: float = 1e-5, opset: int = 18, less: float = 0.0, **steps: str
) -> EngineCase:
    weights = {"g": ROW["g"] - np.float32(less)} | ({"s": ROW["s"]} if op == "LayerNormalization" else {})
    made = tokens(ROWS.format(op=op, epsilon=epsilon, gains=", ".join(weights)), opset=opset, **weights)
    made.ir_version = 11 if opset > 21 else made.ir_version
    edited = edit(op, count=16, epsilon=epsilon, **steps)
    return EngineCase(name, made, SPIKY, op, edited, (op, *said) if said else ())


def _channels(name: str, said: Sequence[str], *, epsilon: float = 1e-5, **steps: str) -> EngineCase:
    op = "InstanceNormalization"
    made = picture(BLOCK.format(epsilon=epsilon), opset=18, **CHANNEL)
    edited = edit(op, count=144, epsilon=epsilon, centre=CENTRED, **steps)
    return EngineCase(name, made, X, op, edited, (op, *said) if said else ())


def _groups(name: str, shape: str, said: Sequence[str]) -> EngineCase:
    made = picture(GROUPS, opset=21, **CHANNEL)
    made.ir_version = 10
    return EngineCase(name, made, X, "GroupNormalization", INSERTING + TURNED.format(shape=shape), said)


def normalizations() -> list[EngineCase]:
    """Return engines whose normalization takes other statistics, or puts an epsilon or a one elsewhere."""
    layer, rms = "LayerNormalization", "RMSNormalization"
    return [
        _rows(layer, "epsilon of rows scaled to 1", ("epsilon", "largest"), epsilon=0.01, centre=CENTRED,
              spread=SCALED),
        _rows(layer, "unbiased rows", ("unbiased|15",), centre=CENTRED, spread=UNBIASED, epsilon=0.1),
        _rows(layer, "mean of rows left in", ("mean",)),
        _rows(layer, "variance without its root", ("root",), centre=CENTRED,
              root='root = before("Identity", some)'),
        _rows(layer, "one more in the scale", ("scale|1 \\+|\\+ 1|one more",), centre=CENTRED,
              gain='gain = before("Add", gain, one)', less=1.0),
        _rows(rms, "mean of rows taken off", ("mean",), opset=23, centre=CENTRED),
        _rows(rms, "epsilon beside the root", ("epsilon", "root"), opset=23, epsilon=0.05, root=OUTSIDE),
        _rows(rms, "one more in the scale of a root mean square", ("scale|1 \\+|\\+ 1|one more",), opset=23,
              gain='gain = before("Add", gain, one)', less=1.0),
        _rows(rms, "unbiased root mean square", ("unbiased|15",), opset=23, spread=UNBIASED, epsilon=0.1),
        _channels("unbiased channels", ("unbiased|143",), epsilon=0.1, spread=UNBIASED),
        _channels("epsilon of channels scaled to 1", ("epsilon", "largest"), epsilon=0.02, spread=SCALED),
        _groups("channels of a group far apart", "2, 4", ("GroupNormalization", "group")),
    ]  # fmt: skip


def sound_normalizations() -> list[EngineCase]:
    """Return engines whose normalization is right, or wrong in a way that no known difference is."""
    layer, rms = "LayerNormalization", "RMSNormalization"
    return [
        _rows(layer, "rows in single steps", (), centre=CENTRED),
        _rows(rms, "a root mean square in single steps", (), opset=23),
        _channels("channels in single steps", ()),
        _rows(layer, "squares cut off at 2", (), centre=CENTRED, spread=TRIMMED),
        _rows(rms, "squares of rows cut off at 2", (), opset=23, spread=TRIMMED),
        _rows(layer, "another epsilon", (), epsilon=0.01, centre=CENTRED,
              spread='some = before("Add", mean, constant(np.float32(0.0237)))'),
        _rows(layer, "a cube root", (), centre=CENTRED,
              root='root = before("Pow", some, constant(np.float32(1 / 3)))'),
        _groups("other channels together", "4, 2", ()),
        _channels("channels of noise", (), spread=(
            'some = before("Mul", before("Add", mean, epsilon), constant(1 + np.float32(0.1) * '
            'np.random.default_rng(5).standard_normal((1, 8, 1, 1)).astype(np.float32)))')),
    ]  # fmt: skip

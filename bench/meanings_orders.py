"""Engines that return the right numbers in wrong places: at one op, or at several that they compute together.

Written by hand, and not by what is measured. Those without words move numbers in a way that no order of axes is.
"""

from collections.abc import Sequence

import numpy as np
from meanings_cases import T, X, picture, tokens
from meanings_engines import EngineCase
from meanings_normalizations import INSERTING
from reports import normal

AS = """
def moved(source, *steps):
    for shape, perm in steps:
        source = before("Reshape", source, constant(np.array(shape)))
        source = before("Transpose", source, perm=perm) if perm else source
    node.op_type, node.input[:] = "Identity", [source]
    del node.attribute[:]


made_by = {o: n for n in made.graph.node for o in n.output}
seen = {o.name for o in made.graph.output}
"""

BLOCKS = """k = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(c, u)
        e = DepthToSpace<blocksize={block}, mode="CRD">(k)
        d = Conv<kernel_shape=[3,3]>(e, u2)"""
DEPTH = """k = SpaceToDepth<blocksize=2>(c)
        d = Conv<kernel_shape=[1,1]>(k, u)"""
SHUFFLE = """k = Conv<kernel_shape=[3,3], pads=[1,1,1,1], group=2>(c, u)
        r5 = Reshape(k, five)
        t5 = Transpose<perm=[0,2,1,3,4]>(r5)
        e = Reshape(t5, four)
        d = Conv<kernel_shape=[3,3], pads=[1,1,1,1], group=2>(e, u2)"""
HEADS = """q4 = Reshape(c, heads)
        qt = Transpose<perm=[0,2,1,3]>(q4)
        e = Softplus(qt)
        back = Transpose<perm=[0,2,1,3]>(e)
        d = Reshape(back, rows)"""
FLAT = """k = Conv<kernel_shape=[3,3], strides=[2,2]>(c, u)
        f = Flatten(k)
        g = MatMul(f, w2)
        d = Reshape(g, picture)"""
SQUARE = """h = Tanh(c)
        t = Transpose<perm=[0,2,1]>(h)
        s = MatMul(c, t)
        s1 = Sin(s)
        e = Transpose<perm=[0,2,1]>(s1)
        d = MatMul(e, c)"""
WINDOWS = """k = Conv<kernel_shape=[1,1]>(c, u)
        r6 = Reshape(k, six)
        t6 = Transpose<perm=[0,2,4,1,3,5]>(r6)
        e = Reshape(t6, windows)
        h = Softmax<axis=-1>(e)
        d = Reshape(h, four)"""
FORMS = {"five": np.array([2, 2, 4, 12, 12]), "four": np.array([2, 8, 12, 12])}


def _one(name: str, model, feed, op: str, edit: str, said: Sequence[str] = ()) -> EngineCase:
    return EngineCase(name, model, feed, op, INSERTING + AS + edit, said)


def _blocks(block: int, channels: int):
    return picture(
        BLOCKS.format(block=block), u=normal(3, channels * block**2, 8, 3, 3, scale=0.3),
        u2=normal(4, 6, channels, 3, 3, scale=0.3),
    )  # fmt: skip


def orders() -> list[EngineCase]:
    """Return engines that put axes in another order."""
    shuffle = picture(SHUFFLE, u=normal(3, 8, 4, 3, 3, scale=0.3), u2=normal(4, 8, 4, 3, 3, scale=0.3), **FORMS)
    heads = tokens(HEADS, heads=np.array([2, 6, 4, 4]), rows=np.array([2, 6, 16]))
    flat = picture(FLAT, u=normal(3, 6, 8, 3, 3, scale=0.3), w2=normal(4, 150, 32, scale=0.2),
                   picture=np.array([2, 8, 2, 2]))  # fmt: skip
    windows = picture(
        WINDOWS, u=normal(3, 8, 8, 1, 1, scale=0.5), six=np.array([2, 8, 3, 4, 3, 4]), windows=np.array([18, 8, 16]),
        four=np.array([2, 8, 12, 12]),
    )  # fmt: skip
    depth = picture(DEPTH, u=normal(3, 6, 32, 1, 1, scale=0.3))
    return [
        _one("blocks of the other mode", _blocks(2, 3), X, "DepthToSpace",
             "without('mode')\nnode.attribute.append(helper.make_attribute('mode', 'DCR'))",
             ("DepthToSpace", "DCR")),
        _one("blocks of three of the other mode", _blocks(3, 2), X, "DepthToSpace",
             "without('mode')\nnode.attribute.append(helper.make_attribute('mode', 'DCR'))",
             ("DepthToSpace", "DCR")),
        _one("block before depth", _blocks(3, 2), X, "DepthToSpace",
             "moved(node.input[0], ([2, 3, 3, 2, 12, 12], [0, 1, 4, 2, 5, 3]), ([2, 2, 36, 36], None))",
             ("DepthToSpace", "\\[0, 1, 4, 2, 5, 3\\]|reshaped")),
        _one("rows and columns of a block exchanged", _blocks(3, 2), X, "DepthToSpace",
             "moved(node.input[0], ([2, 2, 3, 3, 12, 12], [0, 1, 4, 3, 5, 2]), ([2, 2, 36, 36], None))",
             ("DepthToSpace", "\\[0, 1, 4, 3, 5, 2\\]|reshaped")),
        _one("depth before block", depth, X, "SpaceToDepth",
             "moved(node.input[0], ([2, 8, 6, 2, 6, 2], [0, 1, 3, 5, 2, 4]), ([2, 32, 6, 6], None))",
             ("SpaceToDepth", "reshaped|pixels of a block came within each channel")),
        _one("shuffle of the other number of groups", shuffle, X, "Transpose", """
first = made_by.get(node.input[0])
if first is not None and first.op_type == "Reshape" and not {node.input[0], node.output[0]} & seen:
    moved(first.input[0], ([2, 4, 2, 12, 12], [0, 2, 1, 3, 4]), ([2, 4, 2, 12, 12], None))
""", ("reshaped",)),
        _one("heads in the order of the rows", heads, T, "Transpose", """
if node.input[0] in made_by and made_by[node.input[0]].op_type == "Reshape" and node.input[0] not in seen:
    node.op_type = "Reshape"
    node.input.append(constant(np.array([2, 4, 6, 4])))
    del node.attribute[:]
""", ("reshape",)),
        _one("flattened with channels last", flat, X, "Flatten",
             "if node.output[0] == 'f':\n    moved(node.input[0], ([2, 6, 5, 5], [0, 2, 3, 1]), ([2, 150], None))",
             ("Flatten", "reshaped|channels (came )?last")),
        _one("square left as it lies", tokens(SQUARE), T, "Transpose", """
if node.input[0] in made_by and made_by[node.input[0]].op_type == "Sin":
    node.op_type = "Identity"
    del node.attribute[:]
""", ("Transpose", "left out|did nothing|reshaped|passes")),
        _one("windows by columns", windows, X, "Transpose", """
if node.input[0] not in seen:
    without('perm')
    node.attribute.append(helper.make_attribute('perm', [0, 4, 2, 1, 5, 3]))
""", ("Transpose", "perm were|reshaped")),
    ]  # fmt: skip


def sound_orders() -> list[EngineCase]:
    """Return engines that move numbers in no order of axes, or leave them where they are."""
    shuffled = "after('Gather', constant(np.random.default_rng(3).permutation(8)), axis=1)"
    sort = "after('Mul', constant(np.float32(1)))\nnode.op_type = node.op_type"
    return [
        _one("blocks", _blocks(2, 3), X, "DepthToSpace",
             "moved(node.input[0], ([2, 3, 2, 2, 12, 12], [0, 1, 4, 2, 5, 3]), ([2, 3, 24, 24], None))"),
        _one("blocks of noise", _blocks(2, 3), X, "DepthToSpace",
             "after('Gather', constant(np.random.default_rng(4).permutation(24)), axis=3)"),
        _one("channels anywhere", picture("d = Conv<kernel_shape=[3,3]>(c, u)", u=normal(3, 8, 8, 3, 3)), X, "Conv",
             "if node.output[0] == 'd':\n    " + shuffled),
        _one("the same", picture("d = Conv<kernel_shape=[3,3]>(c, u)", u=normal(3, 8, 8, 3, 3)), X, "Conv", sort),
    ]  # fmt: skip

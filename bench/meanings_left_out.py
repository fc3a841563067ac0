"""Engines that do not compute some of a network: casts, stretches of ops, updates of a state, results beyond a type.

Written by hand, and not by what is measured. Those without words are off in a way that no known difference is, or not
at all.
"""

from collections.abc import Sequence

import numpy as np
from meanings_cases import NORM, MeaningCase, T, X, picture, tokens
from meanings_engines import EngineCase
from reports import normal

FUSED = """
made_by = {o: n for n in made.graph.node for o in n.output}
seen = {o.name for o in made.graph.output}


def up(steps):
    nodes = [node]
    for op in steps:
        maker = made_by.get(nodes[-1].input[0])
        if maker is None or maker.op_type != op or maker.output[0] in seen:
            return None
        nodes.append(maker)
    return nodes[-1]
"""
"""The node so many ops before one, where none of what lies between is looked at."""

CASTS = """k0 = Mul(c, k)
        i = Cast<to=6>(k0)
        j = Cast<to=1>(i)
        d0 = Mul(j, q)
        d = Add(d0, c)"""
FLAGS = """k = Sub(c, c0)
        o = Relu(k)
        z = Cast<to=9>(o)
        f = Cast<to=1>(z)
        d = Mul(f, c)"""
BLOCK = """n = LayerNormalization(c, g, s)
        u = MatMul(n, w1)
        a = Tanh(u)
        e = MatMul(a, w2)
        t = Softplus(e)
        d = Mul(t, c)"""
RECURRENCE = """t = Transpose<perm=[1,0,2]>(c)
        last, all = Scan{attributes}(start, t)
        back = Transpose<perm=[1,0,2]>(all)
        d = Add(back, c)"""
BODY = """<body = b (float[2,16] h, float[2,16] x1) => (float[2,16] h1, float[2,16] out) {
            m = MatMul(h, u)
            z = Add(m, x1)
            h1 = Tanh(z)
            out = Sigmoid(h1)
        }, num_scan_inputs=1>"""
BYTES = """k0 = Mul(c, k)
        a = Cast<to=3>(k0)
        e = {op}(a, b8)
        f = Cast<to=1>(e)
        d = Mul(f, q)"""


def _number(value: float) -> np.ndarray:
    return np.array(value, np.float32)


def _block():
    return tokens(BLOCK, g=1 + normal(3, 16, scale=0.2), s=normal(4, 16, scale=0.2), w1=normal(5, 16, 40, scale=0.3),
                  w2=normal(6, 40, 16, scale=0.2))  # fmt: skip


def _scan():
    return tokens(RECURRENCE.format(attributes=BODY), start=normal(3, 2, 16), u=normal(4, 16, 16, scale=0.3))


def _bytes(op: str, scale: float = 60):
    return tokens(BYTES.format(op=op), k=_number(scale), q=_number(0.01),
                  b8=np.random.default_rng(3).integers(-90, 90, 16).astype(np.int8))  # fmt: skip


def _casts():
    return picture(CASTS, k=_number(3), q=_number(1 / 3))


def left_out() -> list[EngineCase | MeaningCase]:
    """Return engines and programs that leave something out."""
    first = _block()
    saturated = """
a, b = (before("Cast", node.input[i], to=6) for i in (0, 1))
whole = before("Clip", before(node.op_type, a, b), constant(np.int32(-128)), constant(np.int32(127)))
node.op_type, node.input[:] = "Cast", [whole]
node.attribute.append(helper.make_attribute("to", 3))
"""
    inserting = """
def before(kind, *inputs, **attributes):
    name = f'{node.output[0]}/before{len(made.graph.node)}'
    made.graph.node.insert(list(made.graph.node).index(node), helper.make_node(kind, inputs, [name], **attributes))
    return name
"""

    def skip(steps: Sequence[str]) -> str:
        return FUSED + f"far = up({list(steps)!r})\nif far is not None:\n    node.input[0] = far.output[0]"

    return [
        EngineCase("fractions that stay", _casts(), X, "Cast",
                   FUSED + "first = up(['Cast'])\nif first is not None:\n    node.input[0] = first.input[0]",
                   ("Cast", "left out|passed through")),
        EngineCase("flags that stay numbers", picture(FLAGS, c0=_number(0.3)), X, "Cast",
                   FUSED + "first = up(['Cast'])\nif first is not None:\n    node.input[0] = first.input[0]",
                   ("Cast", "left out|passed through")),
        EngineCase("a block of three ops skipped", first, T, "Softplus",
                   skip(["MatMul", "Tanh", "MatMul", "LayerNormalization"]), ("'n'", "left out|not 'e'")),
        EngineCase("a norm and a block skipped", first, T, "Mul",
                   FUSED + "far = up(['Softplus', 'MatMul', 'Tanh', 'MatMul'])\n"
                   "if far is not None and node.output[0] == 'd':\n    node.input[0] = far.input[0]",
                   ("'n'", "left out|not 't'")),
        MeaningCase("normalization left out", tokens(NORM, eps=_number(1e-5)), tokens("d = Identity(c)"), T,
                    ("'c'", "left out")),
        MeaningCase("a program without the last two layers", _block(), _without(), T, ("'n'", "left out")),
        EngineCase("a Scan that collects its state", _scan(), T, "Scan",
                   "body = node.attribute[[a.name for a in node.attribute].index('body')].g\n"
                   "body.node.append(helper.make_node('Identity', ['h1'], ['same_']))\n"
                   "body.output[1].name = 'same_'", ("Scan", "'h1'")),
        EngineCase("a Scan whose state stays", _scan(), T, "Scan",
                   "body = node.attribute[[a.name for a in node.attribute].index('body')].g\n"
                   "body.node.append(helper.make_node('Identity', ['h'], ['same_']))\n"
                   "body.output[0].name = 'same_'", ("Scan", "'h'|beginning")),
        EngineCase("sums of bytes that stop", _bytes("Add"), T, "Add",
                   inserting + "if node.output[0] == 'e':\n    " + saturated.strip().replace("\n", "\n    "),
                   ("Add", "saturat")),
        EngineCase("differences of bytes that stop", _bytes("Sub"), T, "Sub", inserting + saturated,
                   ("Sub", "saturat")),
    ]  # fmt: skip


def _without():
    return tokens("n = LayerNormalization(c, g, s)\n t = Softplus(n)\n d = Mul(t, c)",
                  g=1 + normal(3, 16, scale=0.2), s=normal(4, 16, scale=0.2))  # fmt: skip


def sound_left_out() -> list[EngineCase]:
    """Return engines that leave out nothing, or are off by noise."""
    noise = "after('Mul', constant(1 + np.random.default_rng(5).standard_normal(16).astype(np.float32) / 50))"
    return [
        EngineCase("casts", _casts(), X, "Cast", "pass"),
        EngineCase("a state", _scan(), T, "Scan", "pass"),
        EngineCase("bytes that do not reach an end", _bytes("Sub", 5), T, "Sub", "pass"),
        EngineCase("a block off by noise", _block(), T, "Softplus", noise),
        EngineCase("a state off by noise", _scan(), T, "Scan",
                   "more = constant(1 + np.random.default_rng(7).standard_normal((6, 2, 16)).astype(np.float32) / 50)\n"
                   "made.graph.node.insert(at + 1, helper.make_node('Mul', ['own_', more], [node.output[1]]))\n"
                   "node.output[1] = 'own_'"),
    ]  # fmt: skip

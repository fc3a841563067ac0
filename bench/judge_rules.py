"""Are the rules of the judge kept by small networks? Ties that a format decides, and some networks for each rule.

    python bench/judge_rules.py
    python bench/judge_rules.py --only tie lost

The right answers stand in the table, written before any of them was asked: the verdicts of `diagnose` that are right,
and the exit codes of both commands. Data count as the user's, but where a name begins with ``made-up``.
"""

import argparse
import dataclasses
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper, parser

FP16, BF16, FP32 = "emulate:precision=fp16", "emulate:precision=bf16", "onnxruntime"
TOLD, GOOD, OPEN = (1,), (0,), (4,)
TIE = "rounding match"


@dataclasses.dataclass(frozen=True)
class Case:
    """A network, what it is asked with, and the right answers.

    Attributes:
        body: Nodes, one a line, as ONNX's text has them; ``w..`` are drawn weights, other operands initializers.
        inputs: Shapes of float inputs.
        output: Type and shape.
        target: The engine, or ``PYTHON`` for a script that shows outputs alone.
        verdicts: Those that are right.
        diagnose: Right exit codes.
        run: Likewise.
        weights: Drawn weights by name and shape, and given arrays.
    """

    body: str
    output: str
    target: str
    verdicts: str
    diagnose: Sequence[int] = GOOD
    run: Sequence[int] = GOOD
    x: Sequence[int] = (64, 32)
    weights: dict = dataclasses.field(default_factory=dict)
    reference: str = "onnxruntime:optimization=none"
    scale: float = 1.0


W = {"w": (32, 16)}
PRODUCT = "h = MatMul(x, w)\n"
CHAIN = {"w": (32, 32), "v": (32, 32), "u": (32, 8)}
MLP = "a = MatMul(x, w)\nb = Tanh(a)\nc = MatMul(b, v)\nd = Tanh(c)\ny = MatMul(d, u)"
PARTS = "a = MatMul(x, w)\nf = Mul(a, big)\nc = MatMul(x, v)\ns = Sigmoid(c)\ny = Concat<axis = -1>(f, s)"
BOXES = {"w": (32, 4), "v": (32, 2), "big": np.float32(640.0)}
TEN = np.float32(10.0)

CASES: dict[str, Case] = {
    # ties: an integer or a bool that a rounded number decides
    "tie-floor-cast": Case(
        PRODUCT + "g = Mul(h, s)\nf = Floor(g)\ny = Cast<to = 7>(f)",
        "int64[64, 16]",
        FP16,
        TIE,
        weights={**W, "s": TEN},
    ),
    "tie-round-cast": Case(
        PRODUCT + "g = Mul(h, s)\nf = Round(g)\ny = Cast<to = 6>(f)",
        "int32[64, 16]",
        FP16,
        TIE,
        weights={**W, "s": TEN},
    ),
    "tie-cast": Case(
        PRODUCT + "g = Mul(h, s)\ny = Cast<to = 7>(g)", "int64[64, 16]", BF16, TIE, weights={**W, "s": TEN}
    ),
    "tie-argmax": Case(
        PRODUCT + "y = ArgMax<axis = 1, keepdims = 0>(h)", "int64[2000]", BF16, TIE, x=(2000, 32), weights=W
    ),
    "tie-topk": Case(
        PRODUCT + "t, y = TopK<axis = 1>(h, k)",
        "int64[500, 3]",
        BF16,
        TIE,
        x=(500, 32),
        weights={**W, "k": np.array([3])},
    ),
    "tie-greater": Case(
        "h = MatMul(x, w)\ng = MatMul(x, v)\ny = Greater(h, g)",
        "bool[500, 16]",
        BF16,
        TIE,
        x=(500, 32),
        weights={**W, "v": (32, 16)},
    ),
    "tie-where": Case(
        "h = MatMul(x, w)\ng = Greater(h, z)\ny = Where(g, h, m)",
        "float[500, 16]",
        BF16,
        TIE,
        x=(500, 32),
        weights={**W, "z": np.float32(1.0), "m": np.float32(-3.0)},
    ),
    "tie-table": Case(
        PRODUCT + "g = Mul(h, s)\nf = Round(g)\nc = Clip(f, lo, hi)\ni = Cast<to = 7>(c)\ny = Gather(t, i)",
        "float[64, 16, 4]",
        FP16,
        TIE,
        weights={**W, "s": TEN, "lo": np.float32(0), "hi": np.float32(99), "t": (100, 4)},
    ),
    "tie-count": Case(
        PRODUCT + "g = Less(h, z)\nf = Cast<to = 1>(g)\ny = ReduceSum<keepdims = 0>(f, ax)",
        "float[64]",
        BF16,
        TIE,
        weights={**W, "z": np.float32(0.3), "ax": np.array([1])},
    ),
    "tie-bytes": Case(
        PRODUCT
        + "a = Abs(h)\ng = Mul(a, s)\nc = Clip(g, lo, hi)\ni = Cast<to = 2>(c)\nf = Cast<to = 1>(i)\ny = Div(f, hi)",
        "float[64, 16]",
        FP16,
        TIE,
        weights={**W, "s": np.float32(20), "lo": np.float32(0), "hi": np.float32(255)},
    ),
    "tie-sign": Case(PRODUCT + "g = Sign(h)\ny = MatMul(g, u)", "float[64, 4]", BF16, TIE, weights={**W, "u": (16, 4)}),
    "tie-mod": Case(
        PRODUCT + "g = Mul(h, s)\nf = Floor(g)\ni = Cast<to = 7>(f)\ny = Mod(i, m)",
        "int64[64, 16]",
        FP16,
        TIE,
        weights={**W, "s": TEN, "m": np.array(7)},
    ),
    "tie-deep-cast": Case(
        MLP.replace("y =", "e =") + "\ng = Mul(e, s)\nf = Round(g)\ni = Cast<to = 7>(f)\nj = Cast<to = 1>(i)\n"
        "k = MatMul(j, p)\nq = Tanh(k)\ny = MatMul(q, r)",
        "float[64, 4]",
        FP16,
        TIE,
        weights={**CHAIN, "s": TEN, "p": (8, 16), "r": (16, 4)},
    ),
    "tie-deep-argmax": Case(
        MLP.replace("y =", "e =")
        + "\ni = ArgMax<axis = 1, keepdims = 0>(e)\nt2 = Gather(t, i)\nk = MatMul(t2, p)\ny = Softmax(k)",
        "float[600, 16]",
        BF16,
        TIE,
        x=(600, 32),
        weights={**CHAIN, "t": (8, 8), "p": (8, 16)},
    ),
    "tie-quantized-state": Case(
        MLP.replace("y =", "e =") + "\nm0 = ReduceMax<keepdims = 1>(e)\nn0 = Div(e, m0)\ng = Mul(n0, s)\nf = Round(g)\n"
        "b2 = Div(f, s)\ny = MatMul(b2, p)",
        "float[64, 16]",
        BF16,
        TIE,
        weights={**CHAIN, "s": np.float32(127), "p": (8, 16)},
    ),
    "tie-few": Case(
        PRODUCT + "g = ReduceMean<axes = [0], keepdims = 0>(h)\nk = Mul(g, s)\nf = Floor(k)\ny = Cast<to = 7>(f)",
        "int64[16]",
        FP16,
        TIE,
        weights={**W, "s": np.float32(1000)},
    ),
    "tie-one": Case(PRODUCT + "g = ReduceSum<keepdims = 0>(h)\ny = Cast<to = 7>(g)", "int64", BF16, TIE, weights=W),
    "tie-iou": Case(
        "h = MatMul(x, w)\na = Sigmoid(h)\nb = Greater(a, z)\nn = Not(b)\n"
        "f = Cast<to = 1>(n)\ng = Mul(a, f)\ny = ReduceMax<keepdims = 0, axes = [1]>(g)",
        "float[64]",
        BF16,
        TIE,
        weights={**W, "z": np.float32(0.5)},
    ),
    "tie-unique": Case(
        PRODUCT + "g = Mul(h, s)\nf = Round(g)\ni = Cast<to = 7>(f)\nq = Equal(i, o)\ny = Where(q, h, s)",
        "float[64, 16]",
        FP16,
        TIE,
        weights={**W, "s": TEN, "o": np.array(3)},
    ),
    # what is no tie: an integer that is wrong for a fault
    "no-tie-cast": Case(
        PRODUCT + "g = Mul(h, s)\nf = Floor(g)\ny = Cast<to = 7>(f)",
        "int64[64, 16]",
        "faulty:kind=offset,node=f,amount=1,precision=fp16",
        "local-fault",
        TOLD,
        TOLD,
        weights={**W, "s": TEN},
    ),
    "no-tie-argmax": Case(
        PRODUCT + "y = ArgMax<axis = 1, keepdims = 0>(h)",
        "int64[500]",
        "faulty:kind=scale,node=h,amount=-1,precision=bf16",
        "local-fault",
        TOLD,
        TOLD,
        x=(500, 32),
        weights=W,
    ),
    # lost is lost
    "lost-constant": Case(
        "a = MatMul(x, w)\nb = Mul(a, big)\ny = Mul(b, small)",
        "float[64, 16]",
        FP16,
        "range-overflow non-finite",
        TOLD,
        TOLD,
        weights={**W, "big": np.float32(1e6), "small": np.float32(1e-6)},
    ),
    "lost-vanishes": Case(
        "a = Mul(x, tiny)\ny = MatMul(a, w)",
        "float[64, 16]",
        FP16,
        "range-overflow",
        TOLD,
        TOLD,
        weights={"w": (32, 16), "tiny": np.float32(1e-9)},
    ),
    "lost-offset": Case(
        "h = MatMul(x, w)\na = Add(h, o)\nb = Tanh(x)\ny = Sub(a, o)",
        "float[64, 16]",
        BF16,
        "rounding",
        TOLD,
        TOLD,
        weights={**W, "o": np.float32(5000)},
    ),
    "lost-not-quite": Case(
        "h = MatMul(x, w)\na = Add(h, o)\ny = Sub(a, o)",
        "float[64, 16]",
        FP16,
        "rounding",
        GOOD,
        GOOD,
        weights={**W, "o": np.float32(100)},
    ),
    # nothing passes vacuously
    "noise-cancels": Case(
        "a = MatMul(x, w)\nb = MatMul(a, v)\nc = MatMul(w, v)\nd = MatMul(x, c)\ny = Sub(b, d)",
        "float[64, 8]",
        "openvino:precision=fp32",
        "inconclusive rounding input-sensitive comparison-unsound",
        (0, 1, 4),
        (1, 4),
        weights={"w": (32, 16), "v": (16, 8)},
    ),
    "made-up-constant": Case(
        "a = Relu(x)\nb = Sub(a, o)\ny = Relu(b)",
        "float[64, 32]",
        FP32,
        "inconclusive match",
        (0, 4),
        (0, 4),
        weights={"o": np.float32(1000)},
    ),
    "nan-both": Case(
        "h = MatMul(x, w)\na = Abs(h)\nb = Neg(a)\ny = Sqrt(b)",
        "float[64, 16]",
        FP32,
        "comparison-unsound non-finite inconclusive",
        (1, 4),
        (1, 4),
        weights=W,
    ),
    # parts count
    "part-lost": Case(
        PARTS, "float[64, 6]", "faulty:kind=scale,node=s,amount=0.3", "local-fault", TOLD, TOLD, weights=BOXES
    ),
    "part-lost-behind": Case(
        PARTS.replace("y = Concat", "q = Concat") + "\ny = Transpose<perm = [1, 0]>(q)",
        "float[6, 64]",
        "faulty:kind=offset,node=s,amount=-0.4",
        "local-fault",
        TOLD,
        TOLD,
        weights=BOXES,
    ),
    "part-sound": Case(PARTS, "float[64, 6]", FP16, "rounding match", GOOD, GOOD, weights=BOXES),
    # what excuses the whole must excuse each op
    "op-beyond-format": Case(
        MLP,
        "float[64, 8]",
        "faulty:kind=noise,node=c,amount=0.004,precision=fp16",
        "local-fault",
        TOLD,
        TOLD,
        weights=CHAIN,
    ),
    "op-within-format": Case(MLP, "float[64, 8]", BF16, "rounding", GOOD, GOOD, weights=CHAIN),
    "op-of-coarse": Case(
        MLP,
        "float[64, 8]",
        "faulty:kind=scale,node=a,amount=1.08,precision=bf16",
        "local-fault",
        TOLD,
        TOLD,
        weights=CHAIN,
    ),
    # equal operands are seen ones
    "unseen-mod": Case(
        "h = MatMul(x, w)\ng = Mul(h, s)\ni = Cast<to = 6>(g)\ny = Mod(i, m)",
        "int32[64, 16]",
        "PYTHON c[name] = np.where(c[name] > 3, c[name] - 7, c[name])",
        "local-fault model-changed comparison-unsound inconclusive",
        (1, 4),
        TOLD,
        weights={**W, "s": TEN, "m": np.array(7, np.int32)},
    ),
    "unseen-scale": Case(
        MLP,
        "float[64, 8]",
        "PYTHON c[name] = c[name] * np.float32(1.01)",
        "local-fault comparison-unsound model-changed inconclusive",
        (1, 4),
        TOLD,
        weights=CHAIN,
    ),
    # the reference is judged on every feed
    "reference-wrong": Case(
        MLP,
        "float[64, 8]",
        FP32,
        "comparison-unsound",
        TOLD,
        TOLD,
        weights=CHAIN,
        reference="faulty:kind=scale,node=c,amount=1.05",
    ),
    "reference-races": Case(
        MLP,
        "float[64, 8]",
        FP32,
        "match comparison-unsound nondeterministic-run",
        (0, 1),
        (0, 1),
        weights=CHAIN,
        reference="faulty:kind=nondeterministic,node=c,amount=0.05",
    ),
    "both-wrong": Case(
        MLP,
        "float[64, 8]",
        "faulty:kind=scale,node=c,amount=1.05",
        "comparison-unsound local-fault",
        TOLD,
        TOLD,
        weights=CHAIN,
        reference="faulty:kind=scale,node=c,amount=1.05",
    ),
}

PYTHON = """
import numpy as np
import onnxruntime


class Engine:
    def compile(self, model, options):
        self.session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
        return self

    def run(self, feed):
        name = self.session.get_outputs()[0].name
        c = {name: self.session.run([name], dict(feed))[0]}
        CHANGE
        return c
"""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--only", nargs="+", default=[], help="beginnings of names")
    arguments.add_argument("--target", default="", help="another engine than the table's")
    given = arguments.parse_args()
    only = tuple(given.only)
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        for case in (each for each in CASES if not only or each.startswith(only)):
            row, good = asked(case, Path(name) / case, given.target)
            wrong += not good
            print(row, flush=True)
    print(f"{wrong} not as they should be")


def asked(name: str, folder: Path, target: str) -> tuple[str, bool]:
    """Return a line about a case, and whether both commands are right."""
    case, options = CASES[name], written(name, folder, target)
    ran = triage("run", *options).returncode
    said = triage("diagnose", *options, "--case", str(folder / "case"))
    box = re.search(r"^\W*(?:[✓✗i?!~] )?([a-z-]+)  ", said.stdout.split("╭", 1)[-1].split("\n", 1)[-1], re.MULTILINE)
    verdict = box[1] if box else "none"
    good = verdict in case.verdicts.split() and said.returncode in case.diagnose and ran in case.run
    words = " ".join(re.findall(r"│ (.*?) *│", said.stdout.split("╭", 1)[-1])[1:4])[:200] if not good else ""
    return f"{'ok   ' if good else 'WRONG'} {name:18} {verdict:20} exit {said.returncode}, run {ran}  {words}", good


def triage(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [Path(sys.executable).with_name("triage"), *words], capture_output=True, text=True, check=False
    )


def written(name: str, folder: Path, other: str = "") -> list[str]:
    """Write model, data and engine; return the words of both commands."""
    folder.mkdir()
    case, rng = CASES[name], np.random.default_rng(sum(map(ord, name)))
    text = re.sub(r"^(?:(\w+), )?(\w+) = ", lambda m: f"[{m[2]}] {m[0]}", case.body, flags=re.MULTILINE)
    shape = f"float[{', '.join(map(str, case.x))}]"
    head = f'<ir_version: 8, opset_import: ["": 17]> {name.replace("-", "_")}'
    graph = f"{head} ({shape} x) => ({case.output} y) {{ {text} }}"
    model = parser.parse_model(graph)
    for weight, given in case.weights.items():
        drawn = (
            (rng.standard_normal(given) / np.sqrt(given[0])).astype(np.float32) if isinstance(given, tuple) else given
        )
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(drawn), weight))
    onnx.save(model, folder / "model.onnx")
    np.savez(folder / "x.npz", x=(rng.standard_normal(case.x) * case.scale).astype(np.float32))
    target = other or case.target
    if target.startswith("PYTHON "):
        (folder / "engine.py").write_text(PYTHON.replace("CHANGE", target.removeprefix("PYTHON ")))
        target = f"script:{folder / 'engine.py'}:Engine"
    (folder / "faulty.py").write_text("from tensortriage_testing import FaultyEngine as Engine\n")
    target, reference = (s.replace("faulty:", f"script:{folder / 'faulty.py'},") for s in (target, case.reference))
    data = [] if name.startswith("made-up") else ["--inputs", str(folder / "x.npz")]
    return [str(folder / "model.onnx"), "--reference", reference, "--target", target, *data]


if __name__ == "__main__":
    main()

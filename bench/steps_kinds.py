"""Are loops of other makes walked step by step: healthy ones in peace, a fault with step and op?

    python bench/steps_kinds.py
    python bench/steps_kinds.py --only ring

Small networks with attention, written here: a cache of a fixed size with ``cache_position``, a ring buffer, a window
that slides, caches that ``beam_idx`` reorders (each row continues with itself, or rows change places), several tokens a
step, rows of a batch padded on the left, and a speech encoder that takes chunks and keeps the end of each for its
convolution. Each runs in fp32, fp16 and bf16, then with 10 % planted in one op, from the first step on; then caches of
a fixed size with wrong slots, and ``beam_idx`` with wrong rows, at every step and at one.
"""

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx

from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage_steps.request import StepsRequest
from tensortriage_steps.steps_report import StepsReport
from tensortriage_steps.walk import walk
from tensortriage_testing import save_model
from tensortriage_testing.graph_writer import GraphWriter, floats, integers

TARGETS = ("onnxruntime", "emulate:precision=fp16", "emulate:precision=bf16")
WIDTH, WORDS, ROOM, FRAMES, KERNEL, STEPS = 32, 61, 24, 8, 3, 10
RING = 6
CACHES = ("key", "value")
HIDDEN = -3e4
"""Score of a row that is not seen, in the range of fp16: with -1e9 a query of padding, which sees none, ends in NaN."""
KINDS = ("static", "ring", "sliding", "beams", "reordered", "several", "left-padded", "chunks")
BEAMS = ([2, 0, 1], [1, 1, 0], [1, 2, 0], [2, 2, 1])
"""Which row each continues with, in turn."""


def decoder(kind: str) -> onnx.ModelProto:
    """Return a decoder of one layer and one head.

    Args:
        kind: How its cache is kept; ``beams``, ``reordered``, ``several`` and ``left-padded`` have one that grows.
    """
    g = GraphWriter(3)
    fixed = kind in ("static", "ring", "sliding")
    size = ROOM if kind == "static" else RING
    position = "cache_position" if fixed else "position_ids"
    x = g.op("Gather", g.normal("words", (WORDS, WIDTH), 0.9), "input_ids", name="/embed/Gather", axis=0)
    places = g.op("Gather", g.normal("places", (128, WIDTH), 0.4), position, name="/places/Gather", axis=0)
    x = g.op("Add", x, places, name="/Add")
    query, *new = (
        g.op("MatMul", x, g.normal(f"{word}.weight", (WIDTH, WIDTH), 1.2 / WIDTH**0.5), name=f"/attn/{word}/MatMul")
        for word in ("query", *CACHES)
    )
    held = []
    for word, rows in zip(CACHES, new, strict=True):
        held.append(_kept(g, kind, word, rows, size))
    turned = g.op("Transpose", held[0], name="/attn/Transpose", perm=[0, 2, 1])
    scores = g.op("MatMul", query, turned, name="/attn/MatMul")
    scores = g.op("Mul", scores, g.scalar("root", WIDTH**-0.5), name="/attn/Mul")
    masked = g.op("Where", _visible(g, kind, size), scores, g.scalar("hidden", HIDDEN), name="/attn/Where")
    weights = g.op("Softmax", masked, name="/attn/Softmax", axis=-1)
    mixed = g.op("MatMul", weights, held[1], name="/attn/MatMul_1")
    g.op("MatMul", g.op("Add", x, mixed, name="/Add_1"), g.normal("head", (WIDTH, WORDS), 0.3), name="/head/MatMul")
    g.publish("logits")
    batch = 1 if fixed else "batch"
    inputs = [integers("input_ids", batch, "sequence")]
    inputs += [integers(position, "sequence")] if fixed else [integers(position, "batch", "sequence")]
    inputs += [] if fixed else [integers("attention_mask", "batch", "past + sequence")]
    inputs += [integers("beam_idx", "batch")] if kind in ("beams", "reordered") else []
    inputs += [floats(f"past_key_values.0.{word}", batch, size if fixed else "past", WIDTH) for word in CACHES]
    outputs = [floats("logits", batch, "sequence", WORDS)]
    outputs += [floats(f"present.0.{word}", batch, size if fixed else "past + sequence", WIDTH) for word in CACHES]
    return g.finish(kind, inputs, outputs)


def _kept(g: GraphWriter, kind: str, word: str, rows: str, size: int) -> str:
    past, name = f"past_key_values.0.{word}", f"/attn/{word}"
    if kind in ("static", "ring"):
        place = "cache_position"
        if kind == "ring":
            place = g.op("Mod", place, g.weight("size", np.int64(size)), name=f"{name}/Mod")
        place = g.op("Reshape", place, g.indices("column", 1, -1, 1), name=f"{name}/Reshape")
        place = g.op("Expand", place, g.op("Shape", rows, name=f"{name}/Shape"), name=f"{name}/Expand")
        g.op("ScatterElements", past, place, rows, name=f"{name}/Scatter", axis=1)
    elif kind == "sliding":
        longer = g.op("Concat", past, rows, name=f"{name}/Concat", axis=1)
        g.op("Slice", longer, g.indices("start", -size), g.indices("end", 2**31), g.indices("rows", 1),
             name=f"{name}/Slice")  # fmt: skip
    else:
        if kind in ("beams", "reordered"):
            past = g.op("Gather", past, "beam_idx", name=f"{name}/Gather", axis=0)
        g.op("Concat", past, rows, name=f"{name}/Concat", axis=1)
    return g.publish(f"present.0.{word}")


def _visible(g: GraphWriter, kind: str, size: int) -> str:
    """Say which row a query sees."""
    if kind in ("static", "ring", "sliding"):
        rows = np.arange(size) if kind != "sliding" else np.arange(size)[::-1].copy()
        column = g.op("Unsqueeze", "cache_position", g.indices("last", 1), name="/mask/Unsqueeze")
        return g.op("LessOrEqual", g.weight("slots", rows), column, name="/mask/LessOrEqual")
    one, zero = g.weight("one", np.int64(1)), g.weight("zero", np.int64(0))
    total, count = (
        g.op("Gather", g.op("Shape", name, name=f"/mask/{name}/Shape"), one, name=f"/mask/{name}/Gather", axis=0)
        for name in ("attention_mask", "input_ids")
    )
    keys = g.op("Range", zero, total, one, name="/mask/Range")
    past = g.op("Sub", total, count, name="/mask/Sub")
    queries = g.op("Range", past, total, one, name="/mask/Range_1")
    column = g.op("Unsqueeze", queries, g.indices("last", 1), name="/mask/Unsqueeze")
    before = g.op("LessOrEqual", keys, column, name="/mask/LessOrEqual")
    shown = g.op("Cast", "attention_mask", name="/mask/Cast", to=onnx.TensorProto.BOOL)
    shown = g.op("Unsqueeze", shown, g.indices("middle", 1), name="/mask/Unsqueeze_1")
    return g.op("And", before, shown, name="/mask/And")


def encoder() -> onnx.ModelProto:
    """Return a speech encoder that takes chunks, and keeps the last frames of each for its convolution."""
    g = GraphWriter(4)
    frames = g.op("Concat", "cache_last_time", "audio", name="/conv/Concat", axis=2)
    g.op("Slice", frames, g.indices("start", 1 - KERNEL), g.indices("end", 2**31), g.indices("time", 2),
         name="/conv/Slice")  # fmt: skip
    g.publish("cache_last_time_next")
    x = g.op("Conv", frames, g.normal("conv", (WIDTH, WIDTH, KERNEL), 0.1), name="/conv/Conv")
    x = g.op("Transpose", g.op("Tanh", x, name="/Tanh"), name="/Transpose", perm=[0, 2, 1])
    held = g.op("Concat", "cache_last_channel", x, name="/attn/Concat", axis=1)
    held = g.op("Slice", held, g.indices("start_rows", -2 * FRAMES), g.indices("end", 2**31), g.indices("rows", 1),
                name="/attn/Slice")  # fmt: skip
    held = g.publish("cache_last_channel_next")
    turned = g.op("Transpose", held, name="/attn/Transpose", perm=[0, 2, 1])
    weights = g.op("Softmax", g.op("MatMul", x, turned, name="/attn/MatMul"), name="/attn/Softmax", axis=-1)
    mixed = g.op("MatMul", weights, held, name="/attn/MatMul_1")
    g.op("MatMul", g.op("Add", x, mixed, name="/Add"), g.normal("head", (WIDTH, WORDS), 0.3), name="/head/MatMul")
    g.publish("encoded")
    caches = {"cache_last_time": (1, WIDTH, KERNEL - 1), "cache_last_channel": (1, 2 * FRAMES, WIDTH)}
    inputs = [floats("audio", 1, WIDTH, FRAMES), *(floats(name, *shape) for name, shape in caches.items())]
    outputs = [floats("encoded", 1, FRAMES, WORDS), *(floats(f"{n}_next", *shape) for n, shape in caches.items())]
    return g.finish("encoder", inputs, outputs)


def samples(kind: str, folder: Path) -> list[str]:
    """Write what is given, and return where."""
    rng = np.random.default_rng(0)
    if kind == "chunks":
        return []
    rows = 1 if kind in ("static", "ring", "sliding", "several") else 2
    given = [{"input_ids": rng.integers(0, WORDS, (rows, 4))}]
    if kind == "left-padded":
        given[0]["attention_mask"] = np.array([[0, 0, 1, 1], [1, 1, 1, 1]])
    if kind == "several":
        given += [{"input_ids": rng.integers(0, WORDS, (rows, 3))} for _ in range(STEPS - 1)]
    if kind == "reordered":
        given = [
            {"input_ids": rng.integers(0, WORDS, (3, 1 if step else 4)), "beam_idx": np.array(BEAMS[step % len(BEAMS)])}
            for step in range(STEPS)
        ]
    paths = [folder / f"{number:02}.npz" for number in range(len(given))]
    for path, arrays in zip(paths, given, strict=True):
        np.savez(path, **arrays)
    return [str(path) for path in paths]


def faults(kind: str) -> Iterator[tuple[str, str, int]]:
    """Yield faults as options of `FaultyEngine`, their nodes, and the first step that each shows in."""
    yield "kind=scale,amount=1.1", "/conv/Conv" if kind == "chunks" else "/attn/value/MatMul", 0
    yield "kind=scale,amount=1.1", "/attn/MatMul_1", 0
    if kind in ("static", "ring"):  # the first step writes 4 rows, and each later one a row
        yield "kind=slot-after", "/attn/key/Scatter", 0
        yield "kind=slot-after,length=5", "/attn/value/Scatter", 2
    if kind == "ring":  # the slot of position 11 is 5, and becomes 0
        yield "kind=offset,amount=-1,length=11", "/attn/key/Mod", 8
    if kind == "reordered":  # what step 0 reorders is empty; at step 4 caches of 7 rows are given
        yield "kind=in-order", "/attn/key/Gather", 1
        yield "kind=in-order,length=7", "/attn/value/Gather", 4
        yield "kind=row-before", "/attn/value/Gather", 1
        yield "kind=row-before,length=7", "/attn/key/Gather", 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", choices=KINDS)
    only = parser.parse_args().only
    runs = alarms = planted = named = 0
    with tempfile.TemporaryDirectory(prefix="bench-kinds-") as name:
        (Path(name) / "faulty.py").write_text("from tensortriage_testing import FaultyEngine as Engine\n")
        for kind in (only,) if only else KINDS:
            folder = Path(name) / kind
            folder.mkdir()
            save_model(encoder() if kind == "chunks" else decoder(kind), folder / "model.onnx")
            paths = samples(kind, folder)
            for target in TARGETS:
                report = ask(folder, target, paths, drift=True)
                runs, alarms = runs + 1, alarms + (report.exit_code != 0)
                print(f"{kind} {target}: {report.verdict}: {report.summary}", flush=True)
            for fault, node, step in faults(kind):
                target = f"script:{name}/faulty.py:Engine,{fault},node={node}"
                report = ask(folder, target, paths, drift=False)
                right = report.first == step and report.diagnosis is not None and report.diagnosis.node == node
                planted, named = planted + 1, named + right
                print(f"{'ok' if right else 'NO'} {kind} {fault} {node}: {report.summary}", flush=True)
    print(f"healthy: {alarms} alarms of {runs}; faults: step and op of {named} of {planted}")


def ask(folder: Path, target: str, paths: list[str], *, drift: bool) -> StepsReport:
    case = Path(tempfile.mkdtemp(dir=folder))
    return walk(
        StepsRequest(
            model=folder / "model.onnx",
            target=target,
            steps=STEPS,
            feeding=FeedRequest(paths=paths),
            case=case,
            drift=drift,
        )
    )


if __name__ == "__main__":
    main()

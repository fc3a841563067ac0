"""A decoder whose weights are larger than the memory that may be used: layer-wise comparison and diagnosis of a fault.

    python bench/beyond_memory.py [--blocks 24] [--gb 12] [--limit 6G] [--directory DIR] [--commands [WORD ...]]

The model is generated: so many blocks of 25 nodes (attention with one head, a GELU written out), random float32 weights
in one data file. The target is ONNX Runtime with a fault planted in one node of one block. Each command runs under
`--memory-limit`, and again the kernel refuses what is beyond it (`RLIMIT_DATA`: memory of each process that is its own;
files that are mapped to be read do not count). That counts what is reserved, too, which for stacks, arenas and buffers
of BLAS is some 1.5 GB whatever the model: --no-rlimit for limits below. `peak` is the largest anonymous memory of all
processes of the command together. With --commands: those that look into, cut and convert the model.
"""

import argparse
import resource
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from compiled import compile_packages
from onnx import TensorProto, helper

TRIAGE = [sys.executable, "-c", "from tensortriage.cli import main; main()"]
TOKENS = 16
BLOCK = """
    ReduceMean:mean:x Sub:center:x,mean Mul:square:center,center ReduceMean:var:square Add:eps:var,#small Sqrt:std:eps
    Div:norm:center,std MatMul:q:norm,#q MatMul:k:norm,#k MatMul:v:norm,#v Transpose:turned:k MatMul:scores:q,turned
    Mul:scaled:scores,#scale Softmax:weights:scaled MatMul:mixed:weights,v MatMul:projected:mixed,#o
    Add:added:x,projected MatMul:up:added,#up Add:biased:up,#bias Mul:cut:biased,#half Erf:erf:cut Add:one:erf,#one
    Mul:gelu:biased,one MatMul:down:gelu,#down Add:out:added,down
"""
"""Nodes of a block as operator, result and operands; ``#name`` is a weight."""
FAULTY = "from tensortriage_testing import FaultyEngine\n\nclass Engine(FaultyEngine):\n    pass\n"
COMMANDS = """
    inspect model decoder.onnx
    check lint decoder.onnx --no-engine
    surgeon extract decoder.onnx --node-range 10 59 -o cut/out.onnx
    convert decoder.onnx --precision fp16 -o half/out.onnx
"""


def decoder(folder: Path, *, blocks: int, width: int, seed: int = 0, sparse: bool = False) -> Path:
    """Write a decoder of so many blocks and return its file.

    Args:
        folder: Where to write ``decoder.onnx`` and ``decoder.bin``.
        blocks: How many blocks.
        width: Size of the hidden state; a block has 12 width^2 + 4 width weights.
        seed: Of the random weights.
        sparse: Whether the weights are a hole in the file, that is zeros, which take no room on disk.
    """
    random = np.random.default_rng(seed)
    numbers = random.standard_normal(1 if sparse else 5 * width * width, dtype=np.float32)
    nodes, weights, last = [], [], "x"
    with (folder / "decoder.bin").open("wb") as file:
        for block in range(blocks):
            places = {"x": last}
            for text in BLOCK.split():
                op_type, result, operands = text.split(":")
                names = []
                for operand in operands.split(","):
                    name = places.get(operand, f"block{block}.{operand[1:]}")
                    names.append(name)
                    if operand.startswith("#"):
                        weights.append(_weight(file, name, operand[1:], width, random, numbers, sparse=sparse))
                places[result] = last = f"block{block}/{result}"
                given = {"ReduceMean": {"axes": [-1]}, "Transpose": {"perm": [0, 2, 1]}, "Softmax": {"axis": -1}}
                nodes.append(helper.make_node(op_type, names, [last], name=f"{last}_node", **given.get(op_type, {})))
    nodes.append(helper.make_node("Identity", [last], ["y"], name="last"))
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, TOKENS, width)) for name in "xy"]
    graph = helper.make_graph(nodes, "decoder", ends[:1], ends[1:], weights)
    path = folder / "decoder.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path.write_bytes(model.SerializeToString())
    return path


def _weight(
    file, name: str, kind: str, width: int, random: np.random.Generator, normal: np.ndarray, *, sparse: bool
) -> TensorProto:
    """Return the message of a weight, whose numbers go into the data file where there are many."""
    numbers = {"small": 1e-5, "scale": width**-0.5, "half": 0.5**0.5, "one": 1.0}
    if kind in numbers:
        return helper.make_tensor(name, TensorProto.FLOAT, (), [numbers[kind]])
    shape = {"up": (width, 4 * width), "down": (4 * width, width), "bias": (4 * width,)}.get(kind, (width, width))
    offset = -(-file.tell() // 4096) * 4096
    size = 4 * int(np.prod(shape))
    file.seek(offset)
    if sparse:
        file.truncate(offset + size)
        file.seek(offset + size)
    else:
        begin = random.integers(normal.size - size // 4)  # a stretch of the same numbers: making them takes longer
        file.write((normal[begin : begin + size // 4] * np.float32(0.5 * shape[0] ** -0.5)).data)
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=shape, data_location=TensorProto.EXTERNAL)
    for key, value in (("location", "decoder.bin"), ("offset", offset), ("length", size)):
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def anonymous_bytes(ancestor: int) -> int:
    """Return the anonymous memory of a process and all that it started (proc(5): RssAnon and PPid)."""
    sizes, parents = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            lines = (line.split() for line in (folder / "status").read_text().splitlines())
        except OSError:
            continue
        told = {words[0]: words[1] for words in lines if len(words) > 1}
        sizes[int(folder.name)] = int(told.get("RssAnon:", 0)) << 10
        parents[int(folder.name)] = int(told["PPid:"])
    total = 0
    for process, size in sizes.items():
        above = process
        while above not in (0, ancestor):
            above = parents.get(above, 0)
        total += size if above == ancestor else 0
    return total


def run(words: Sequence[str], folder: Path, *, limit: int | None) -> tuple[float, int, int, str]:
    """Run a command; return its seconds, its peak of anonymous memory, its exit code and its output."""

    def refuse() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))

    started, peak, ended = time.perf_counter(), 0, threading.Event()
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            [*TRIAGE, *words], cwd=folder, stdout=said, stderr=subprocess.STDOUT, preexec_fn=refuse,
            start_new_session=True,
        )  # fmt: skip

        def watch() -> None:
            nonlocal peak
            while not ended.wait(0.1):
                peak = max(peak, anonymous_bytes(process.pid))

        watcher = threading.Thread(target=watch)
        watcher.start()
        code = process.wait()
        ended.set()
        watcher.join()
        said.seek(0)
        return time.perf_counter() - started, peak, code, said.read()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=24)
    parser.add_argument("--gb", type=float, default=12.0, help="size of the weights in units of 10^9 bytes")
    parser.add_argument("--limit", default="6G")
    parser.add_argument("--directory", type=Path)
    parser.add_argument("--commands", nargs="*", metavar="WORD")
    parser.add_argument("--no-rlimit", action="store_true", help="leave the limit to --memory-limit alone")
    parser.add_argument("--sparse", action="store_true", help="weights of zeros that take no room on disk")
    parser.add_argument("--only", choices=("run", "diagnose"), help="one of the two")
    parser.add_argument("--unlimited", action="store_true", help="run as a whole, to see what that takes")
    given = parser.parse_args()
    compile_packages()
    width = round((given.gb * 1e9 / given.blocks / 48) ** 0.5 / 32) * 32
    limit = int(float(given.limit[:-1]) * {"G": 1 << 30, "M": 1 << 20}[given.limit[-1]])
    node = f"block{given.blocks * 2 // 3}/weights_node"
    with tempfile.TemporaryDirectory(dir=given.directory) as name:
        folder = Path(name)
        started = time.perf_counter()
        decoder(folder, blocks=given.blocks, width=width, sparse=given.sparse)
        size = (folder / "decoder.bin").stat().st_size
        print(
            f"{given.blocks} blocks of width {width}, {size / 1e9:.2f} GB, "
            f"written in {time.perf_counter() - started:.0f} s"
        )
        (folder / "faulty.py").write_text(FAULTY)
        target = f"script:faulty.py,kind=scale,node={node},amount=1.05"
        bound = [] if given.unlimited else ["--memory-limit", given.limit]
        lines = [
            ["run", "decoder.onnx", "--onnx-outputs", "mark", "all", "--target", target, *bound],
            ["diagnose", "decoder.onnx", "--target", target, "--case", "case", *bound],
        ]
        lines = [words for words in lines if given.only in (None, words[0])]
        if given.commands is not None:
            texts = filter(None, map(str.strip, COMMANDS.splitlines()))
            lines = [shlex.split(t) for t in texts if not given.commands or any(word in t for word in given.commands)]
        for words in lines:
            seconds, peak, code, said = run(words, folder, limit=None if given.unlimited or given.no_rlimit else limit)
            print(f"{seconds:7.1f} s  {peak / 1e6:7.0f} MB peak  exit {code}  {shlex.join(words)}")
            print("\n".join(f"    {line[:200]}" for line in said.strip().splitlines()[-30:]), flush=True)


if __name__ == "__main__":
    main()

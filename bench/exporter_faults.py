"""Whose fault is it, the exporter's or the engine's? Planted faults of both kinds on networks of PyTorch.

    python bench/exporter_faults.py [--engine | --mistakes] [--exporter legacy] [WORD...]

Needs PyTorch and onnxscript, and with --engine transformers. An exporter's fault is a network of `networks.exporter`
that is exported as a wrong translation of one line would be (a word), or an edit of the right file. ``diagnose
--torch`` is to end in ``model-changed`` with the module of that line first, and the line. An engine's fault (--engine)
is a node of the right file, of one of `ENGINE_NETWORKS`, that `FaultyEngine` computes wrong; it is to end in a verdict
of the engine with the module of that node first. With --mistakes a user's mistake is to be said in words, with no node.
"""

import argparse
import contextlib
import dataclasses
import importlib
import inspect
import io
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType

import numpy as np
import onnx
import torch
from networks import exporter as networks
from onnx import numpy_helper
from torch.utils import _pytree as pytree

from tensortriage.diagnose.state.verdict import Verdict
from tensortriage.model.model import Model
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.workflows.diagnosis.diagnose import diagnose
from tensortriage.workflows.requests import DiagnoseRequest
from tensortriage_testing import FaultyEngine

ENGINE = "from tensortriage_testing import FaultyEngine\nclass Engine(FaultyEngine):\n    pass\n"
Edit = Callable[[onnx.GraphProto], None]


@dataclasses.dataclass(frozen=True)
class Planted:
    """One fault of an exporter.

    Attributes:
        network: Function of `networks.exporter`.
        word: What the network is exported with; or what the edit is called.
        module: Path of the module whose line is translated wrong; empty for the network itself.
        code: Text of that line; several lines when the exporter may blame any.
        edit: Change of the right file, instead of a wrong export.
        legacy: Module in the older exporter's file, where the dynamo exporter joins the operation with the next one.
    """

    network: str
    word: str
    module: str
    code: tuple[str, ...]
    edit: Edit | None = None
    legacy: str | None = None


def attribute(op_type: str, number: int, name: str, value: object) -> Edit:
    """Return an edit of an attribute."""

    def change(graph: onnx.GraphProto) -> None:
        node = [node for node in graph.node if node.op_type == op_type][number]
        kept = [each for each in node.attribute if each.name != name]
        del node.attribute[:]
        node.attribute.extend([*kept, onnx.helper.make_attribute(name, value)])

    return change


def untie(graph: onnx.GraphProto) -> None:
    """Give the last multiplication weights of its own, exchanged by one row."""
    node = [node for node in graph.node if node.op_type == "MatMul"][-1]
    shared = next(tensor for tensor in graph.initializer if tensor.name == node.input[1])
    graph.initializer.append(numpy_helper.from_array(np.roll(numpy_helper.to_array(shared), 1, 1), "untied"))
    node.input[1] = "untied"


FAULTS = (
    Planted("detector", "nearest", "neck", ("fn.interpolate(coarse",)),
    Planted("detector", "meshgrid", "heads.0", ("torch.meshgrid", "grid = torch.stack")),
    Planted("detector", "half-pixel", "heads.0", ("half-pixel",)),
    Planted("detector", "sigmoid", "heads.0", ('pick("sigmoid"',)),
    Planted("detector", "clamp", "suppress", ('pick("clamp"',)),
    Planted("detector", "triu", "suppress", ('pick("triu"',)),
    Planted("detector", "pads", "fine.conv", ("self.act(self.bn(self.conv(x)))",),
            attribute("Conv", 1, "pads", [0, 0, 2, 2])),
    Planted("detector", "pool-pads", "pool", ("coarse + self.pool(coarse)",),
            attribute("MaxPool", 0, "pads", [0, 0, 4, 4])),
    Planted("decoder", "rms-epsilon", "layers.0.input_norm", ("rms-epsilon",)),
    Planted("decoder", "rotation", "layers.0.self_attn.rope", ('"rotation" in WRONG', "rotated(query)")),
    Planted("decoder", "head-order", "layers.0.self_attn", ("head-order",)),
    Planted("decoder", "sdpa-scale", "layers.0.self_attn", ("fn.scaled_dot_product_attention(",)),
    Planted("decoder", "silu", "layers.0.mlp", ('pick("silu"',)),
    Planted("decoder", "places", "layers.0.self_attn.rope", ("cos, sin = angle.cos()",)),
    Planted("decoder", "mask-value", "", ("mask-value", "masked.triu")),
    Planted("decoder", "untied", "lm_head", ("self.lm_head(self.norm(x))",), untie),
    Planted("unet", "base", "time", ('pick("base"', "angle = t[")),
    Planted("unet", "reflect", "down", ("fn.pad(high", "self.down(padded)"), legacy=""),
    Planted("unet", "corners", "", ("fn.interpolate(low",)),
    Planted("unet", "group-epsilon", "low.norm2", ("self.conv2(self.act(self.norm2(inner)))",)),
    Planted("unet", "instance-epsilon", "last.0", ("self.last(self.up(",)),
    Planted("unet", "gelu", "high.act", ("self.conv1(self.act(self.norm1(x)))",)),
    Planted("unet", "dropout", "drop", ("self.drop(self.low(",)),
    Planted("unet", "transposed", "up", ("self.last(self.up(",)),
    Planted("encoder", "mask-dropped", "", ("mask-dropped",)),
    Planted("encoder", "int32", "hashed", ('pick("int32"',)),
    Planted("encoder", "division", "hashed", ('pick("division"',)),
    Planted("encoder", "mean-of-all", "pool", ("mean-of-all",)),
    Planted("encoder", "unbiased", "pool", ('pick("unbiased"',)),
    Planted("encoder", "layer-epsilon", "layers.1.norm1", ("layer(x, src_key_padding_mask",)),
    Planted("encoder", "first-weight", "layers.1.linear1", ("layer(x, src_key_padding_mask",)),
    Planted("encoder", "activation", "layers.0.activation", ("layer(x, src_key_padding_mask",)),
    Planted("audio", "causal", "causal.conv", ("fn.pad(x", "self.conv(padded)"), legacy="causal"),
    Planted("audio", "slope", "causal", ("fn.leaky_relu",)),
    Planted("audio", "quantizer-scale", "quantized", ("torch.fake_quantize",)),
    Planted("audio", "zero-point", "quantized", ("torch.fake_quantize",)),
    Planted("audio", "cumsum-axis", "running", ("cumsum-axis",)),
    Planted("audio", "branch", "running", ('pick("branch"',)),
    Planted("audio", "softmax-axis", "", ("softmax-axis",)),
    Planted("audio", "gru-reset", "gru", ("self.gru(self.causal(x)",), attribute("GRU", 0, "linear_before_reset", 0)),
)  # fmt: skip


def folded(node: str, place: int) -> Edit:
    """Return an edit of an operand of a node, into which the older exporter has multiplied a norm."""

    def change(graph: onnx.GraphProto) -> None:
        names = next(each.input for each in graph.node if each.name == node)
        tensor = next(tensor for tensor in graph.initializer if tensor.name == names[place])
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * np.float32(1.2), tensor.name))

    return change


FOLDED = (
    Planted("detector", "stem-weight", "stem.conv", ("self.act(self.bn(self.conv(x)))",), folded("/stem/conv/Conv", 1)),
    Planted("detector", "fine-bias", "fine.conv", ("self.act(self.bn(self.conv(x)))",), folded("/fine/conv/Conv", 2)),
    Planted("detector", "head-weight", "heads.1.box", ("self.box(",), folded("/heads.1/box/Conv", 1)),
)  # fmt: skip
"""Faults in the older exporter's files, where norms are in the convolutions before them."""

MISTAKEN = (
    ("right_used_encoder", "unseeded_used_encoder", "other weights at every call"),
    ("right_used_encoder", "checkpoint_used_encoder", "another checkpoint"),
    ("right_used_unet", "trained_used_unet", "another checkpoint"),
    ("right_used_encoder", "training_used_encoder", "training mode"),
    ("right_used_encoder", "exchanged_used_encoder", "inputs are exchanged"),
    ("right_used_unet", "prepared_used_unet", "forward prepares"),
    ("prepared_used_unet", "right_used_unet", "the file prepares"),
    ("right_used_encoder", "ended_used_encoder", "forward continues where the file ends"),
    ("ended_used_encoder", "right_used_encoder", "the file continues where forward ends"),
    ("noisy_used_unet", "noisy_used_unet", "draws random numbers"),
    ("right_used_unet", "noisy_used_unet", "draws random numbers"),
    ("remembering_used_unet", "remembered_used_unet", "keeps state between calls"),
    ("right_used_encoder", "right_unet", "another network"),
)
"""Users' mistakes: what was exported, what it is compared with, and words of the verdict."""

ENGINE_NETWORKS = ("minilm", "gpt2_cached", "vit", "resnet", "unet", "decoder", "detector")
"""Networks in which faults of the engine are planted: of `networks.known`, and of `networks.exporter` those there."""


def source_of(network: str) -> tuple[ModuleType, str]:
    """Return the file in which a network is, and the name of the function that makes it without a fault."""
    if network in networks.USED or network.startswith("right_"):
        return networks, network
    if hasattr(networks, network):
        return networks, f"right_{network}"
    return importlib.import_module("networks.known"), network


class Files:
    """Exported files and feeds, each network once."""

    def __init__(self, folder: Path, exporter: str) -> None:
        self.folder, self.exporter = folder, exporter

    def export(self, network: str, *words: str) -> Path:
        """Export a network with words planted, and save its inputs next to the file."""
        path = self.folder / ("-".join((network, *words)) + ".onnx")
        if not path.exists():
            source, right = source_of(network)
            made = getattr(source, network if source is networks else right)
            module, inputs = made() if network in networks.USED else networks.made(made, *words)
            inputs = inputs if isinstance(inputs, tuple) else (inputs,)
            dynamo = self.exporter == "dynamo"
            printed = io.StringIO()
            with warnings.catch_warnings(), contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                warnings.simplefilter("ignore")
                torch.onnx.export(module, inputs, path, dynamo=dynamo, verbose=False, external_data=False)
            names = [each.name for each in onnx.load(path).graph.input]
            tensors = [leaf for leaf in pytree.tree_leaves(inputs) if isinstance(leaf, torch.Tensor)]
            np.savez(path.with_suffix(".npz"), **{n: t.numpy() for n, t in zip(names, tensors, strict=True)})
            networks.WRONG.clear()
        return path

    def faulty(self, fault: Planted) -> Path:
        """Return the file that a faulty exporter would have written."""
        if fault.edit is None:
            return self.export(fault.network, fault.word)
        right, path = self.export(fault.network), self.folder / f"{fault.network}-{fault.word}.onnx"
        proto = onnx.load(right)
        fault.edit(proto.graph)
        onnx.save(proto, path)
        return path


def ask(files: Files, network: str, model: Path, target: str, *, feed: Path | None = None) -> Verdict:
    """Diagnose a file by its network, on the inputs of that network, or others."""
    source, right = source_of(network)
    with tempfile.TemporaryDirectory() as case:
        return diagnose(
            DiagnoseRequest(
                model=model,
                target=target,
                network=f"torch:{source.__file__}:{right}",
                case=Path(case) / "case",
                feeding=FeedRequest(paths=(str(feed or files.export(network).with_suffix(".npz")),)),
                random_too=False,
                repro=False,
            )
        )


def lines_of(fault: Planted) -> set[int]:
    """Return the lines that the exporter may blame, in the source of the fault's network."""
    lines = inspect.getsource(inspect.getmodule(getattr(networks, fault.network))).splitlines()
    return {number for number, line in enumerate(lines, 1) if any(text in line for text in fault.code)}


def exporter_faults(files: Files, words: Sequence[str]) -> Iterator[tuple[bool, str]]:
    """Yield whether each fault of the exporter was found, and a line about it."""
    for fault in (*FAULTS, *FOLDED) if files.exporter == "legacy" else FAULTS:
        if (words and fault.word not in words) or (fault.word == "dropout" and files.exporter == "legacy"):
            continue  # the older exporter takes dropout out, whatever the network says
        started = time.perf_counter()
        model = files.faulty(fault)
        names = [each.name for each in onnx.load(model).graph.input]
        with np.load(files.export(fault.network).with_suffix(".npz")) as fed:  # the older exporter's names change
            np.savez(model.with_suffix(".fed.npz"), **dict(zip(names, fed.values(), strict=True)))
        verdict = ask(files, fault.network, model, "onnxruntime:optimization=none", feed=model.with_suffix(".fed.npz"))
        origin = verdict.culprits[0].origin if verdict.culprits else None
        module, line = (origin.module, origin.line) if origin else ("-", 0)
        lines = lines_of(fault) if files.exporter == "dynamo" else {line}  # the older one tells no lines of some nodes
        wanted = fault.module if files.exporter == "dynamo" or fault.legacy is None else fault.legacy
        right = verdict.verdict == "model-changed" and module == wanted and line in lines
        seconds = time.perf_counter() - started
        rest = "" if right else f"; wanted '{wanted}' at {sorted(lines_of(fault))}; {verdict.summary}"
        yield right, f"{fault.network} {fault.word}: {verdict.verdict}, '{module}' line {line}, {seconds:.0f} s{rest}"


def mistakes(files: Files, words: Sequence[str]) -> Iterator[tuple[bool, str]]:
    """Yield whether each mistake of a user is said in words and blames no node, and a line about it."""
    for file, network, said in MISTAKEN:
        if words and not set(words).intersection((file, network)):
            continue
        started = time.perf_counter()
        model = files.export(file)
        verdict = ask(files, network, model, "onnxruntime:optimization=none", feed=model.with_suffix(".npz"))
        right = verdict.verdict == "comparison-unsound" and said in verdict.summary and not verdict.culprits
        rest = "" if right else f"; wanted '{said}'; {verdict.summary}"
        yield right, f"{file} as {network}: {verdict.verdict}, {time.perf_counter() - started:.0f} s{rest}"


def engine_faults(files: Files, words: Sequence[str], each: int = 8) -> Iterator[tuple[bool, str]]:
    """Yield whether each fault of the engine was found, and a line about it."""
    kinds = ("scale", "noise", "offset", "sign", "row", "zero-tail", "off-by-one", "saturate")
    (files.folder / "faulty.py").write_text(ENGINE)
    for network in ENGINE_NETWORKS:
        if words and network not in words:
            continue
        path = files.export(network)
        graph, feed = Model.load(path).graph, dict(np.load(path.with_suffix(".npz")))
        healthy = FaultyEngine().compile(path, {}).run(feed)
        planted: list[tuple[str, str]] = []
        nodes = [node.name for node in graph.nodes if graph.origin(node.name).module]
        for place, node in enumerate(np.random.default_rng(0).permutation(nodes)):
            kind = kinds[(len(planted) + place // len(nodes)) % len(kinds)]
            if len(planted) < each and shows(path, feed, healthy, node, kind):
                planted.append((str(node), kind))
        for node, kind in planted:
            started = time.perf_counter()
            target = f"script:{files.folder / 'faulty.py'},kind={kind},node={node}"
            verdict = ask(files, network, path, target)
            module = verdict.culprits[0].origin.module if verdict.culprits and verdict.culprits[0].origin else "-"
            wanted = graph.origin(node)
            right = verdict.kind.exit_code == 1 and verdict.verdict != "model-changed" and module == wanted.module
            seconds = time.perf_counter() - started
            rest = "" if right else f"; wanted '{wanted.module}'; {verdict.summary}"
            yield right, f"{network} {kind} in {node}: {verdict.verdict}, '{module}', {seconds:.0f} s{rest}"


def shows(path: Path, feed: dict[str, np.ndarray], healthy: dict[str, np.ndarray], node: str, kind: str) -> bool:
    """Say whether a fault of the engine moves an output by a hundredth of its root mean square."""
    try:
        found = FaultyEngine().compile(path, {"kind": kind, "node": str(node)}).run(feed)
    except Exception:  # kinds do not fit every node
        return False
    errors = [
        np.sqrt(np.mean((found[name] - right) ** 2.0) / np.mean(right**2.0))
        for name, right in healthy.items()
        if right.dtype.kind == "f" and found[name].shape == right.shape
    ]
    return bool(np.isfinite(errors).all() and max(errors, default=0.0) > 1e-2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="faults of the exporter, or with --engine networks (default: all)")
    parser.add_argument("--engine", action="store_true", help="plant faults of the engine")
    parser.add_argument(
        "--mistakes", action="store_true", help="users' mistakes, none of which is the exporter's fault"
    )
    parser.add_argument("--exporter", choices=("dynamo", "legacy"), default="dynamo")
    given = parser.parse_args()
    os.environ["TORCH_LOGS"] = "-all"
    with tempfile.TemporaryDirectory() as folder:
        files = Files(Path(folder), given.exporter)
        results = []
        asked = mistakes if given.mistakes else engine_faults if given.engine else exporter_faults
        for right, line in asked(files, given.words):
            results.append(right)
            print("right" if right else "WRONG", line, flush=True)
    print(f"{sum(results)} of {len(results)} right ({sum(results) / max(len(results), 1):.0%})")


if __name__ == "__main__":
    main()

"""Does the self-check find rows that an engine treats unequally, and keep silent about healthy engines?

    python bench/consistency.py
    python bench/consistency.py --only faults

Twenty faults (the last row of a tile, a batch above 4, two rows swapped, padding that leaks) planted in four models:
the op must be named, and no reference engine is asked. Then every pair of a healthy engine and a model, which must
pass; models that mix rows themselves, of which nothing may be claimed. Twelve engines that contradict themselves under
a condition must be named by both commands, `diagnose` on a feed of four rows. Needs `openvino`.
"""

import argparse
import itertools
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from tensortriage.errors import TriageError
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.workflows.diagnosis.diagnose import diagnose
from tensortriage.workflows.requests import DiagnoseRequest
from tensortriage_steps.consistency.check import ConsistencyReport, check_consistency
from tensortriage_steps.consistency.request import ConsistencyRequest
from tensortriage_steps.consistency.self_check import ClaimOutcome
from tensortriage_testing import conv_net, encoder, feed_for, mlp, residual_dag, save_model
from tensortriage_testing.quantized_models import quantized

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = {
    "faulty.py": "from tensortriage_testing import FaultyEngine as Engine\n",
    "contradicting.py": "from tensortriage_testing import ContradictingEngine as Engine\n",
    "accelerator.py": "from tensortriage_testing import SimulatedAccelerator as Engine\n",
}
HEALTHY = (
    "onnxruntime",
    "onnxruntime:precision=fp16",
    "openvino:precision=fp32",
    "openvino:precision=bf16",
    "emulate:precision=bf16",
    "script:{}/accelerator.py:Engine,precision=fp16,accumulator=fp16,block=32",
)
TWELVE = {
    "mlp last-row": "kind=last-row,node=/layer.1/Gemm",
    "encoder rows-above": "kind=rows-above,node=/layer.0/attention/MatMul,amount=5",
    "encoder padding-leak": "kind=padding-leak,node=/layer.1/attention/Softmax",
    "encoder odd batch": "kind=row,node=/layer.0/attention/query/MatMul,when=odd-batch",
    "conv_net batch of 5": "kind=scale,node=/block.0/conv1/Conv,when=batch-of=5",
    "mlp misaligned": "kind=tile-tail,node=/layer.0/Gemm,when=misaligned",
    "conv_net strided": "kind=channels-last,node=/block.0/conv1/Conv,when=strided",
    "mlp buffer again": "kind=offset,node=/layer.1/Gemm,when=buffer-again",
    "encoder other stream": "kind=noise,node=/layer.1/attention/MatMul,when=other-stream",
    "mlp one thread": "kind=zero-tail,node=/layer.1/Gemm,when=threads=1",
    "conv_net three threads": "kind=tile,node=/block.0/conv1/Conv,when=threads=3",
    "encoder shape again": "kind=scale,node=/layer.0/mlp/act/Erf,when=shape-again",
}
"""Engines that contradict themselves: model and condition, and the fault."""
PLAIN_KINDS = ("last-row", "rows-above", "swapped-rows")
PLACES = {
    "encoder": ("/embeddings/norm/Mul", "/layer.0/attention/MatMul", "/layer.0/mlp/act/Erf"),
    "conv_net": ("/block.0/conv1/Conv",),
    "mlp": ("/layer.1/Gemm",),
}
"""Where the faults of rows are planted; those of padding in every Softmax of the encoders."""


def networks() -> dict[str, onnx.ModelProto]:
    """Return the models that open their batch."""
    sizes = {"width": 32, "heads": 2, "tokens": 14, "vocabulary": 100, "batch": "batch"}
    fixed = mlp(width=34)
    return {
        "encoder": encoder(layers=2, **sizes),
        "encoder_fused_norm": encoder(layers=3, decomposed_layernorm=False, seed=1, **sizes),
        "conv_net": conv_net(blocks=2, channels=10, batch="batch"),
        "mlp": mlp(width=34, batch="batch"),
        "residual_dag": residual_dag(40, width=14, batch="batch"),
        "quantized": quantized(fixed, feed_for(fixed)),
    }


def mixing() -> dict[str, tuple[onnx.ModelProto, str]]:
    """Return models that mix rows themselves, each with the operator that does."""
    names, shape = ("x", "y"), ["batch", 6]
    scale, zeros = (np.full(6, number, np.float32) for number in (1.5, 0.0))
    nodes = {
        "batch mean": [
            helper.make_node("ReduceMean", ["x"], ["centre"], "mean", axes=[0], keepdims=1),
            helper.make_node("Sub", ["x", "centre"], ["y"], "sub"),
        ],
        "training BatchNormalization": [
            helper.make_node(
                "BatchNormalization",
                ["x", "s", "z", "mean", "variance"],
                ["y", "m", "v"],
                "bn",
                training_mode=1,
                momentum=0.9,
            )
        ],
        "Reshape over rows": [
            helper.make_node("Reshape", ["x", "half"], ["folded"], "fold"),
            helper.make_node("Softmax", ["folded"], ["soft"], "softmax", axis=-1),
            helper.make_node("Reshape", ["soft", "whole"], ["y"], "unfold"),
        ],
    }
    weights = [
        helper.make_tensor("mean", TensorProto.FLOAT, [6], zeros + np.float32(0.1)),
        helper.make_tensor("variance", TensorProto.FLOAT, [6], scale + np.float32(0.5)),
        helper.make_tensor("s", TensorProto.FLOAT, [6], scale),
        helper.make_tensor("z", TensorProto.FLOAT, [6], zeros),
        helper.make_tensor("half", TensorProto.INT64, [2], [-1, 12]),
        helper.make_tensor("whole", TensorProto.INT64, [2], [-1, 6]),
    ]
    found = {}
    for (name, made), op_type in zip(nodes.items(), ("ReduceMean", "BatchNormalization", "Reshape"), strict=True):
        used = {value for node in made for value in node.input}
        values = [helper.make_tensor_value_info(value, TensorProto.FLOAT, shape) for value in names]
        graph = helper.make_graph(made, name, values[:1], values[1:], [w for w in weights if w.name in used])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        found[name] = model, op_type
    return found


def planted(models: Mapping[str, onnx.ModelProto]) -> Iterator[tuple[str, str, str]]:
    """Yield model, kind and node of every fault."""
    for kind, (model, nodes) in itertools.product(PLAIN_KINDS, PLACES.items()):
        for node in nodes:
            yield model, kind, node
    for name in ("encoder", "encoder_fused_norm"):
        for node in models[name].graph.node:
            if node.op_type == "Softmax":
                yield name, "padding-leak", node.name


def ask(model: Path, target: str, inputs: Path | None = None) -> ConsistencyReport | str:
    """Return the report, or why there is none."""
    feeding = FeedRequest(paths=(str(inputs),) if inputs else (), most=8)
    try:
        return check_consistency(ConsistencyRequest(model=model, target=target, feeding=feeding))
    except TriageError as error:
        return f"{error.slug}: {error.message}"


def told(report: ConsistencyReport | str) -> str:
    """Return what a report says in a few words."""
    if isinstance(report, str):
        return report
    first = next((answer for answer in report.broken), None)
    return f"{first.question} {first.answer}" if first else f"silent, {len(report.answers)} questions"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("faults", "engines", "healthy", "mixing"))
    wanted = parser.parse_args().only
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="triage-bench-") as name:
        folder = Path(name)
        for script, text in SCRIPTS.items():
            (folder / script).write_text(text)
        models = networks()
        paths = {model: save_model(proto, folder / f"{model}.onnx") for model, proto in models.items()}
        if wanted in (None, "faults"):
            faults(models, paths, folder)
        if wanted in (None, "engines"):
            engines(models, paths, folder)
        if wanted in (None, "healthy"):
            healthy(paths, folder)
        if wanted in (None, "mixing"):
            mixed(folder)
    print(f"{time.perf_counter() - started:.0f} s")


def faults(models: Mapping[str, onnx.ModelProto], paths: Mapping[str, Path], folder: Path) -> None:
    named = total = 0
    for model, kind, node in planted(models):
        report = ask(paths[model], f"script:{folder}/faulty.py:Engine,kind={kind},node={node}")
        first = report.broken[0].node if not isinstance(report, str) and report.broken else ""
        named, total = named + (first == node), total + 1
        if first != node:
            print(f"MISSED {model} {kind} {node}: {told(report)}")
    print(f"faults: {named} of {total} named without a reference")


def engines(models: Mapping[str, onnx.ModelProto], paths: Mapping[str, Path], folder: Path) -> None:
    named = {"check consistency": 0, "diagnose": 0}
    for title, fault in TWELVE.items():
        model = title.split()[0]
        node = fault.split("node=")[1].split(",")[0]
        target = f"script:{folder}/contradicting.py:Engine,{fault}"
        given = folder / "given.npz"
        np.savez(given, **feed_for(models[model], batch=4))
        report = ask(paths[model], target, given)
        first = [answer.node for answer in report.broken] if not isinstance(report, str) else []
        case = folder / title.replace(" ", "-")
        feeding = FeedRequest(paths=(str(given),))
        verdict = diagnose(DiagnoseRequest(model=paths[model], target=target, case=case, feeding=feeding, repro=False))
        culprits = [culprit.node for culprit in verdict.culprits]
        for command, found in (("check consistency", first[:1]), ("diagnose", culprits[:1])):
            named[command] += found == [node]
            if found != [node]:
                print(f"MISSED by {command}: {title}: {told(report) if found is first else verdict.summary}")
    print("contradicting engines: " + ", ".join(f"{n} of {len(TWELVE)} named by {c}" for c, n in named.items()))


def healthy(paths: Mapping[str, Path], folder: Path) -> None:
    digits = {name: EXAMPLES / f"{name}.onnx" for name in ("digits_cnn", "digits_vit")}
    silent = total = claimed = 0
    for (model, path), engine in itertools.product({**paths, **digits}.items(), HEALTHY):
        report = ask(path, engine.format(folder), EXAMPLES / "digits.npz" if model in digits else None)
        total += 1
        if isinstance(report, str) or report.broken:
            print(f"ALARM {model} {engine}: {told(report)}")
            continue
        silent += 1
        claimed += sum(answer.outcome == ClaimOutcome.HOLDS.value for answer in report.answers)
    print(f"healthy: {silent} of {total} silent, {claimed / max(silent, 1):.1f} questions each")


def mixed(folder: Path) -> None:
    right = 0
    models = mixing()
    for name, (proto, op_type) in models.items():
        report = ask(save_model(proto, folder / "mixing.onnx"), "onnxruntime")
        ops = set() if isinstance(report, str) else {a.op_type for a in report.answers if a.op_type}
        good = ops == {op_type} and not isinstance(report, str) and not report.broken
        right += good
        if not good:
            print(f"MIXING {name}: {told(report)} {ops}")
    print(f"mixing: {right} of {len(models)} models told to mix rows themselves, with the op")


if __name__ == "__main__":
    main()

"""Are decoders as PyTorch exports them walked step by step, with their caches found by name and the truth said of them?

    python bench/steps_exported.py
    python bench/steps_exported.py --only llama-dynamo

A GPT-2 and a Llama of transformers (3 layers, random weights, sizes open) are exported with their caches by both
exporters of PyTorch. Healthy engines must be left in peace; an old row left in each cache at one step must be named
with step and op. Needs `torch`, `onnxscript`, `transformers` and `openvino`.
"""

import argparse
import itertools
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import onnx
import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM
from transformers.cache_utils import DynamicCache

from tensortriage.workflows.requests import StepsRequest
from tensortriage.workflows.steps.steps_request import StepsReport
from tensortriage.workflows.steps.walk import walk

LAYERS, WIDTH, HEADS, WORDS, STEPS = 3, 64, 4, 199, 8
DECODERS = tuple(f"{kind}-{exporter}" for kind, exporter in itertools.product(("gpt2", "llama"), ("dynamo", "legacy")))
HEALTHY = ("onnxruntime", "openvino:precision=fp32", "openvino:precision=bf16")


class Step(torch.nn.Module):
    """A network whose cache is a list of tensors."""

    def __init__(self, network: torch.nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(
        self, ids: torch.Tensor, mask: torch.Tensor, past: list[tuple[torch.Tensor, torch.Tensor]]
    ) -> tuple[torch.Tensor, ...]:
        """Return logits and what the cache holds now."""
        cache = DynamicCache()
        for layer, (key, value) in enumerate(past):
            cache.update(key, value, layer)
        found = self.network(input_ids=ids, attention_mask=mask, past_key_values=cache, use_cache=True)
        return (found.logits, *(x for layer in found.past_key_values.layers for x in (layer.keys, layer.values)))


def network(kind: str) -> tuple[torch.nn.Module, int]:
    """Return a network and how many heads its cache has."""
    torch.manual_seed(0)
    if kind == "gpt2":
        config = GPT2Config(n_layer=LAYERS, n_embd=WIDTH, n_head=HEADS, vocab_size=WORDS, n_positions=128)
        return GPT2LMHeadModel(config).eval(), HEADS
    llama = LlamaConfig(
        num_hidden_layers=LAYERS,
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_attention_heads=HEADS,
        num_key_value_heads=2,
        vocab_size=WORDS,
        max_position_embeddings=128,
    )
    return LlamaForCausalLM(llama).eval(), 2


def export(kind: str, exporter: str, path: Path) -> None:
    """Export a decoder with its cache."""
    inner, heads = network(kind)
    past = [tuple(torch.randn(2, heads, 5, WIDTH // HEADS) for _ in range(2)) for _ in range(LAYERS)]
    inputs = (torch.randint(0, WORDS, (2, 3)), torch.ones(2, 8, dtype=torch.int64), past)
    parts = [f"{layer}.{part}" for layer in range(LAYERS) for part in ("key", "value")]
    takes = ["input_ids", "attention_mask", *(f"past_key_values.{part}" for part in parts)]
    gives = ["logits", *(f"present.{part}" for part in parts)]
    ids, mask, rows = {0: "batch", 1: "sequence"}, {0: "batch", 1: "total"}, {0: "batch", 2: "past"}
    options: dict[str, object] = {"input_names": takes, "output_names": gives, "verbose": False}
    if exporter == "dynamo":
        options |= {"dynamo": True, "dynamic_shapes": (ids, mask, [(rows, rows)] * LAYERS), "external_data": False}
    else:
        axes = {"input_ids": ids, "attention_mask": mask, "logits": ids, **dict.fromkeys(takes[2:], rows)}
        axes |= {name: {0: "batch", 2: "total"} for name in gives[1:]}
        options |= {"dynamo": False, "opset_version": 17, "dynamic_axes": axes}
    torch.onnx.export(Step(inner).eval(), inputs, path, **options)


def planted(path: Path) -> Iterator[tuple[str, int]]:
    """Yield nodes that make caches, each with a step."""
    makers = {name: node.name for node in onnx.load(path).graph.node for name in node.output}
    for layer in range(LAYERS):
        for part, step in (("key", 2 * layer + 1), ("value", 2 * layer + 2)):
            yield makers[f"present.{layer}.{part}"], step


def ask(path: Path, target: str, case: Path, *, drift: bool) -> StepsReport:
    return walk(StepsRequest(model=path, target=target, steps=STEPS, case=case, drift=drift))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=DECODERS, action="append")
    decoders = parser.parse_args().only or DECODERS
    warnings.simplefilter("ignore")
    alarms = named = faults = 0
    with tempfile.TemporaryDirectory(prefix="bench-steps-") as name:
        folder = Path(name)
        (folder / "faulty.py").write_text("from tensortriage.testing import FaultyEngine as Engine\n")
        for decoder in decoders:
            path = folder / f"{decoder}.onnx"
            export(*decoder.split("-"), path)
            for target in HEALTHY:
                report = ask(path, target, folder / f"{decoder}-{target.replace(':', '-')}", drift=True)
                alarms += report.exit_code != 0
                nearest = max(value.ratio for row in report.rows for value in (*row.values, *row.drifted))
                pairs = f"{len(report.carried)} of {2 * LAYERS} pairs"
                print(f"{decoder} {target}: {report.verdict}, {pairs}, {nearest:.2f} of a limit", flush=True)
            first = report.rows[0].length
            for node, step in planted(path):
                target = f"script:{folder}/faulty.py:Engine,kind=stale-row,node={node},length={first + step}"
                report = ask(path, target, folder / f"{decoder}-{step}", drift=False)
                faults += 1
                found = report.diagnosis.node if report.diagnosis else ""
                right = report.verdict == "fault" and report.first == step and found == node
                named += right
                print(f"{'ok' if right else 'NO'} {decoder} {node} step {step}: {report.summary}", flush=True)
    print(f"healthy: {alarms} alarms of {len(decoders) * len(HEALTHY)}; faults: step and op of {named} of {faults}")


if __name__ == "__main__":
    main()

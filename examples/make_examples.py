"""Makes every model and data file of the examples, from scikit-learn's digits, on a CPU, in about two minutes.

    pip install -e '.[examples]'
    python examples/make_examples.py [--out DIR]

The same versions of PyTorch and scikit-learn give the same files. Each claim of ``examples/README.md`` (accuracy in
float32, accuracy with every result rounded to float16, first operator to leave the range) is measured here and printed.
"""

import argparse
import io
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path

import digits
import networks
import numpy as np
import onnx
import torch
from onnx import helper
from positions import position_ids, with_position_ids
from rounding import evaluate, first_non_finite, rounded

from tensortriage_testing.models import feed_for, residual_dag, save_model

HERE = Path(__file__).resolve().parent
DEMO = HERE.parent / "src" / "tensortriage" / "demo"
IN_DEMO = ("digits_vit_overflow.onnx", "digits_vit_overflow.npz")
"""Files that ``triage demo`` needs: they live in the package, the examples only link to them."""

CRASH_NODES, CRASH_SEED = 30, 2
"""Of the first generated graph that made OpenVINO 2026.4.1 die while compiling it."""

BATCH = 32
BROKEN_NODE = "/block2/conv1/Conv"
BROKEN_PADS = (0, 0, 2, 2)

Prepare = Callable[[np.ndarray], dict[str, np.ndarray]]


def unit_feed(pixels: np.ndarray) -> dict[str, np.ndarray]:
    return {"image": digits.unit_range(pixels)}


def byte_feed(pixels: np.ndarray) -> dict[str, np.ndarray]:
    return {"pixels": digits.byte_range(pixels)}


def masked_feed(pixels: np.ndarray) -> dict[str, np.ndarray]:
    return {"image": digits.unit_range(pixels), "attention_mask": digits.inked_patches(pixels)}


def positioned_feed(pixels: np.ndarray) -> dict[str, np.ndarray]:
    return {**unit_feed(pixels), "position_ids": position_ids(networks.TOKENS)}


def nudge(pixels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Move half of the pictures by up to one pixel each way."""
    count = len(pixels)
    moved = rng.random(count) < 0.5
    rows, columns = (np.where(moved, rng.integers(0, 3, count), 1) for _ in range(2))
    frame = np.pad(pixels, ((0, 0), (1, 1), (1, 1)))
    return np.stack([f[r : r + 8, c : c + 8] for f, r, c in zip(frame, rows, columns, strict=True)])


def train(net: torch.nn.Module, prepare: Prepare, data: digits.Digits, *, epochs: int) -> None:
    """Train ``net`` in place with AdamW and a one-cycle rate, 64 pictures a step; leave it in evaluation mode."""
    rng = np.random.default_rng(0)
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=0.05)
    count = len(data.train_labels)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=2e-3, total_steps=epochs * -(-count // 64))
    labels = torch.from_numpy(data.train_labels)
    for _ in range(epochs):
        order = rng.permutation(count)
        feeds = [torch.from_numpy(a) for a in prepare(nudge(data.train_pixels, rng)).values()]
        for start in range(0, count, 64):
            chosen = order[start : start + 64]
            logits = net(*(feed[chosen] for feed in feeds))
            loss = torch.nn.functional.cross_entropy(logits, labels[chosen], label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    net.eval()


def export(net: torch.nn.Module, feed: Mapping[str, np.ndarray]) -> onnx.ModelProto:
    """Export through TorchScript, which names each node after its module (``/blocks.1/norm1/Pow``)."""
    target = io.BytesIO()
    names = [*feed, "logits"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.onnx.export(
            net,
            tuple(torch.from_numpy(a) for a in feed.values()),
            target,
            dynamo=False,
            opset_version=17,
            input_names=list(feed),
            output_names=["logits"],
            dynamic_axes={name: {0: "batch"} for name in names},
        )
    model = onnx.load_from_string(target.getvalue())
    onnx.checker.check_model(model, full_check=True)
    return model


def fold_preprocessing(net: networks.VisionTransformer) -> None:
    """Let ``net`` take 0 to 255 instead of 0 to 1, without retraining.

    The stream before the first LayerNorm becomes 255 times as large as it was, and that LayerNorm divides it out again:
    in float32 the same network, and one preprocessing step less to deploy.
    """
    with torch.no_grad():
        net.patch_embed.bias.mul_(255)
        net.position.mul_(255)


def break_padding(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy in which one convolution pads like TensorFlow's SAME (after) instead of like PyTorch (around)."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    (node,) = (n for n in copy.graph.node if n.name == BROKEN_NODE)
    (pads,) = (a for a in node.attribute if a.name == "pads")
    pads.CopyFrom(helper.make_attribute("pads", BROKEN_PADS))
    return copy


def make_models(data: digits.Digits) -> dict[str, tuple[onnx.ModelProto, Prepare]]:
    few = data.test_pixels[:2]
    vit, masked, cnn = networks.VisionTransformer(), networks.VisionTransformer(), networks.ConvNet()
    train(vit, unit_feed, data, epochs=60)
    train(masked, masked_feed, data, epochs=60)
    train(cnn, unit_feed, data, epochs=20)
    healthy_vit, healthy_cnn = export(vit, unit_feed(few)), export(cnn, unit_feed(few))
    fold_preprocessing(vit)
    return {
        "digits_vit": (healthy_vit, unit_feed),
        "digits_vit_overflow": (export(vit, byte_feed(few)), byte_feed),
        "digits_vit_mask": (export(masked, masked_feed(few)), masked_feed),
        "digits_vit_positions": (with_position_ids(healthy_vit), positioned_feed),
        "digits_cnn": (healthy_cnn, unit_feed),
        "digits_cnn_broken": (break_padding(healthy_cnn), unit_feed),
    }


def accuracy(model: onnx.ModelProto, feed: Mapping[str, np.ndarray], labels: np.ndarray) -> float:
    """Return the share of pictures whose logits are finite and largest at the label."""
    logits = evaluate(model, feed)["logits"]
    return float(np.mean(np.isfinite(logits).all(axis=1) & (logits.argmax(axis=1) == labels)))


def report(models: Mapping[str, tuple[onnx.ModelProto, Prepare]], data: digits.Digits) -> None:
    print(f"{'model':22}{'nodes':>6}{'kB':>6}{'fp32':>8}{'fp16':>8}{'bf16':>8}  on {len(data.test_labels)} pictures")
    for name, (model, prepare) in models.items():
        feed = prepare(data.test_pixels)
        low = (rounded(model, to=to) for to in (onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16))
        fp32, fp16, bf16 = (accuracy(m, feed, data.test_labels) for m in (model, *low))
        culprit = first_non_finite(model, feed)
        note = f"  first Inf/NaN: {culprit.name}" if culprit else ""
        print(f"{name:22}{len(model.graph.node):6}{model.ByteSize() / 1e3:6.0f}{fp32:8.1%}{fp16:8.1%}{bf16:8.1%}{note}")


def write(out: Path | None, models: Mapping[str, tuple[onnx.ModelProto, Prepare]], data: digits.Digits) -> None:
    """Write models and data to ``out``, or to their places in this repository."""

    def place(name: str) -> Path:
        return (out or (DEMO if name in IN_DEMO else HERE)) / name

    for name, (model, _) in models.items():
        onnx.save(model, place(f"{name}.onnx"))
    one = data.test_pixels[:BATCH]
    np.savez_compressed(place("digits.npz"), **unit_feed(one))
    np.savez_compressed(place("digits_vit_overflow.npz"), **byte_feed(one))
    np.savez_compressed(place("digits_vit_mask.npz"), **masked_feed(one))
    np.savez_compressed(place("digits_vit_positions.npz"), **positioned_feed(one))
    whole = len(data.test_pixels) // BATCH * BATCH
    batches = unit_feed(data.test_pixels[:whole])["image"].reshape(-1, BATCH, 1, 8, 8)
    np.savez_compressed(place("digits_samples.npz"), image=batches)
    np.savez_compressed(place("digits_labels.npz"), pixels=data.test_pixels, labels=data.test_labels)


def write_crash(out: Path) -> None:
    model = residual_dag(CRASH_NODES, seed=CRASH_SEED)
    save_model(model, out / "openvino_crash.onnx")
    np.savez_compressed(out / "openvino_crash.npz", **feed_for(model))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="write there instead of over the bundled files")
    out = parser.parse_args().out
    if out:
        out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    data = digits.load()
    models = make_models(data)
    write(out, models, data)
    write_crash(out or HERE)
    report(models, data)


if __name__ == "__main__":
    main()

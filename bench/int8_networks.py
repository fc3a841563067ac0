"""Six small networks with trained weights for `int8.py`, trained and exported where they are not yet in bench/models.

    python bench/int8_networks.py

It takes PyTorch and some minutes, once. ResNet, MobileNet (ReLU6) and ViT tell the digits of examples/, enlarged; the
U-Net takes noise off them; BERT (a padding mask of -1e9) and GPT (causal) read sequences of a Markov chain and restore
hidden tokens or foretell the next one. What they learn is easy: their weights and activations are those of training,
not of a generator. Of each there are the model and 64 samples as feeds, of which the first 32 calibrate.
"""

import math
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

HOME = Path(__file__).parent / "models" / "int8"
EXAMPLES = Path(__file__).parent.parent / "examples"
NAMES = ("resnet", "mobilenet", "vit", "bert", "gpt", "unet")
SAMPLES, CALIBRATING = 64, 32
TOKENS, WORDS = 48, 200


def available(name: str) -> Path:
    """Return the model of a name; its samples lie beside it, as npz of arrays ``[64, 1, ...]``.

    Raises:
        FileNotFoundError: When it was not made yet.
    """
    path = HOME / f"{name}.onnx"
    if not path.exists():
        raise FileNotFoundError(f"{path}: make it with python {__file__}")
    return path


def main() -> None:
    import torch

    HOME.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    for name in NAMES:
        if (HOME / f"{name}.onnx").exists():
            continue
        torch.manual_seed(0)
        module, batches, samples = NETWORKS()[name]()
        steps, most = (320, 5e-4) if name == "vit" else (160, 2e-3)
        optimizer = torch.optim.AdamW(module.parameters(), most, weight_decay=0.01)
        rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, most, steps, pct_start=0.1)
        for step in range(steps):
            inputs, loss = batches(step)
            found = loss(module(*inputs))
            optimizer.zero_grad()
            found.backward()
            optimizer.step()
            rate.step()
            if step % 40 == 39:
                print(f"{name} {step + 1}: loss {found.item():.3f}", flush=True)
        module.eval()
        with torch.no_grad():
            torch.onnx.export(
                module, tuple(array[:1] for array in samples.values()), str(HOME / f"{name}.onnx"),
                input_names=list(samples), output_names=["y"], dynamo=False, opset_version=17,
            )  # fmt: skip
        arrays = {key: array.numpy()[:, None] for key, array in samples.items()}
        np.savez(HOME / f"{name}.npz", **arrays)  # type: ignore[arg-type] # arrays by name


def NETWORKS() -> Mapping[str, Callable[[], tuple]]:  # noqa: N802 - PyTorch is only there when it is called
    """Return what makes each network, its batches (inputs and a loss), and its samples."""
    import torch
    import truth_networks as known
    from torch import Tensor, nn
    from torch.nn import functional as F  # noqa: N812 - everybody's name for it

    with np.load(EXAMPLES / "digits_labels.npz") as file:
        pixels, labels = torch.from_numpy(file["pixels"].astype(np.float32) / 16.0), torch.from_numpy(file["labels"])
    images = F.interpolate(pixels[:, None], 32, mode="bilinear").repeat(1, 3, 1, 1)
    images = (images - 0.3) / 0.35
    test, train = images[:SAMPLES], images[SAMPLES:]

    def noisy(count: int) -> tuple[Tensor, Tensor]:
        chosen = torch.randint(0, len(train), (count,))
        x = torch.roll(train[chosen], (int(torch.randint(-3, 4, ())), int(torch.randint(-3, 4, ()))), (2, 3))
        return x + 0.05 * torch.randn_like(x), labels[SAMPLES:][chosen]

    def digits(make: Callable[[], nn.Module], size: int = 32) -> Callable[[], tuple]:
        def made() -> tuple:
            def batch(_: int) -> tuple:
                x, wanted = noisy(32)
                return (F.interpolate(x, size),), lambda y: F.cross_entropy(y, wanted)

            return make(), batch, {"x": F.interpolate(test, size)}

        return made

    class MobileNet(nn.Module):
        """MobileNetV2's blocks: expand, filter each channel, project, ReLU6 between them."""

        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Sequential(nn.Conv2d(3, 24, 3, 2, 1, bias=False), nn.BatchNorm2d(24), nn.ReLU6())
            widths = (24, 24, 32, 32, 48, 48)
            self.blocks = nn.ModuleList(self.block(i, o) for i, o in zip((24, *widths[:-1]), widths, strict=True))
            self.head = nn.Linear(48, 10)

        @staticmethod
        def block(into: int, out: int) -> nn.Sequential:
            wide = 4 * into
            return nn.Sequential(
                nn.Conv2d(into, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU6(),
                nn.Conv2d(wide, wide, 3, 1 + (into != out), 1, groups=wide, bias=False), nn.BatchNorm2d(wide),
                nn.ReLU6(), nn.Conv2d(wide, out, 1, bias=False), nn.BatchNorm2d(out),
            )  # fmt: skip

        def forward(self, x: Tensor) -> Tensor:
            x = self.stem(x)
            for block in self.blocks:
                y = block(x)
                x = x + y if y.shape == x.shape else y
            return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))

    class ViT(nn.Module):
        """Six pre-norm blocks on 64 patches."""

        def __init__(self) -> None:
            super().__init__()
            self.patches, self.position = nn.Conv2d(3, 128, 4, 4), nn.Parameter(0.02 * torch.randn(64, 128))
            self.blocks = nn.Sequential(*(known.Block(128, 4) for _ in range(6)))
            self.norm, self.head = nn.LayerNorm(128), nn.Linear(128, 10)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.norm(self.blocks(self.patches(x).flatten(2).transpose(1, 2) + self.position)).mean(1))

    class Reader(nn.Module):
        """Embeddings, four blocks, logits of every token; causal, or with a padding mask of -1e9."""

        def __init__(self, *, causal: bool) -> None:
            super().__init__()
            self.words, self.position = nn.Embedding(WORDS, 128), nn.Parameter(0.02 * torch.randn(TOKENS, 128))
            self.blocks = nn.ModuleList(known.Block(128, 4) for _ in range(4))
            for block in self.blocks:
                block.attention.causal = causal
            self.norm, self.head = nn.LayerNorm(128), nn.Linear(128, WORDS)

        def forward(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
            x = self.words(ids) + self.position
            hidden = None if mask is None else (1.0 - mask.to(x.dtype))[:, None, None, :] * -1e9
            for block in self.blocks:
                x = block(x, hidden)
            return self.head(self.norm(x))

    follows = torch.stack([torch.randperm(WORDS)[:4] for _ in range(WORDS)])

    def text(count: int) -> Tensor:
        ids = [torch.randint(0, WORDS, (count,))]
        for _ in range(TOKENS - 1):
            ids.append(follows[ids[-1], torch.randint(0, 4, (count,))])
        return torch.stack(ids, 1)

    def bert() -> tuple:
        def masked(count: int) -> tuple[Tensor, Tensor, Tensor]:
            ids = text(count)
            lengths = torch.randint(TOKENS // 2, TOKENS + 1, (count, 1))
            return torch.where(torch.rand(ids.shape) < 0.15, 0, ids), (torch.arange(TOKENS) < lengths).long(), ids

        def batch(_: int) -> tuple:
            ids, mask, wanted = masked(32)
            return (ids, mask), lambda y: F.cross_entropy(y[mask > 0], wanted[mask > 0])

        ids, mask, _ = masked(SAMPLES)
        return Reader(causal=False), batch, {"ids": ids, "mask": mask}

    def gpt() -> tuple:
        def batch(_: int) -> tuple:
            ids = text(32)
            return (ids,), lambda y: F.cross_entropy(y[:, :-1].flatten(0, 1), ids[:, 1:].flatten())

        return Reader(causal=True), batch, {"ids": text(SAMPLES)}

    class UNet(nn.Module):
        """Two levels with skips, BatchNorm and ReLU, bilinear resizing."""

        def __init__(self) -> None:
            super().__init__()
            self.into, self.down, self.middle = self.block(3, 16), self.block(16, 32), self.block(32, 64)
            self.up2, self.up1, self.out = self.block(96, 32), self.block(48, 16), nn.Conv2d(16, 3, 1)

        @staticmethod
        def block(into: int, out: int) -> nn.Sequential:
            return nn.Sequential(nn.Conv2d(into, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU())

        def forward(self, x: Tensor) -> Tensor:
            a = self.into(x)
            b = self.down(F.max_pool2d(a, 2))
            c = self.middle(F.max_pool2d(b, 2))
            b = self.up2(torch.cat([F.interpolate(c, scale_factor=2.0, mode="bilinear"), b], 1))
            return self.out(self.up1(torch.cat([F.interpolate(b, scale_factor=2.0, mode="nearest"), a], 1)))

    def unet() -> tuple:
        def batch(_: int) -> tuple:
            x, _ = noisy(16)
            return (x + 0.5 * torch.randn_like(x),), lambda y: F.mse_loss(y, x)

        return UNet(), batch, {"x": test + 0.5 * torch.randn_like(test)}

    assert math.isfinite(float(images.sum()))
    return {
        "resnet": digits(known.ResNet, 96), "mobilenet": digits(MobileNet, 96), "vit": digits(ViT), "bert": bert,
        "gpt": gpt, "unet": unet,
    }  # fmt: skip


if __name__ == "__main__":
    main()

"""PyTorch on CUDA as it is by default, where cuDNN may use TF32, and as it can be set: what is said, and how fast.

    python bench/gpu/pytorch_defaults.py [OUT]

A U-Net and an LSTM, both in float32, with PyTorch's defaults, with TF32 off, and with TF32 for matrix products; each
as the target against ONNX Runtime on the CPU. Expected: ``rounding`` or ``match`` everywhere, and one multiplied by
1.02 in the last layer named or at least not passed. Needs PyTorch with CUDA; ``device=cpu`` in TRIAGE_TORCH_DEVICE
rehearses it.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

NETWORKS = '''"""Networks of layers that cuDNN computes."""
import torch
from torch import nn

torch.manual_seed(5)
{settings}


def block(given, made):
    return nn.Sequential(nn.Conv2d(given, made, 3, padding=1), nn.BatchNorm2d(made), nn.ReLU(),
                         nn.Conv2d(made, made, 3, padding=1), nn.BatchNorm2d(made), nn.ReLU())


class UNet(nn.Module):
    def __init__(self, gain=1.0):
        super().__init__()
        self.one, self.two, self.deep = block(3, 32), block(32, 64), block(64, 128)
        self.pool, self.up = nn.MaxPool2d(2), nn.Upsample(scale_factor=2, mode="nearest")
        self.back, self.last, self.out = block(192, 64), block(96, 32), nn.Conv2d(32, 4, 1)
        self.gain = gain

    def forward(self, x):
        a = self.one(x)
        b = self.two(self.pool(a))
        c = self.deep(self.pool(b))
        b = self.back(torch.cat([self.up(c), b], 1))
        return self.out(self.last(torch.cat([self.up(b), a], 1))) * self.gain


class Recurrent(nn.Module):
    def __init__(self, gain=1.0):
        super().__init__()
        self.lstm, self.out, self.gain = nn.LSTM(64, 256, num_layers=2, batch_first=True), nn.Linear(256, 32), gain

    def forward(self, x):
        return self.out(self.lstm(x)[0]) * self.gain


def unet(gain=1.0):
    torch.manual_seed(7)
    return UNet(gain).eval(), (torch.rand(1, 3, 64, 64),)


def lstm(gain=1.0):
    torch.manual_seed(7)
    return Recurrent(gain).eval(), (torch.randn(1, 32, 64),)


def unet_off():
    return unet(1.02)


def lstm_off():
    return lstm(1.02)
'''
SETTINGS = {
    "defaults": "",
    "tf32 off": "torch.backends.cudnn.allow_tf32 = False",
    "tf32 everywhere": "torch.set_float32_matmul_precision('high')",
}
EXPORT = """
import sys; sys.path.insert(0, '.')
import torch, numpy as np, networks
module, given = getattr(networks, sys.argv[1])()
torch.onnx.export(module, given, sys.argv[1] + '.onnx', input_names=['x'], output_names=['y'], dynamo=False)
np.savez(sys.argv[1] + '.npz', x=given[0].numpy())
"""


def main() -> None:
    out = Path(sys.argv[1] if len(sys.argv) > 1 else "/tmp/triage-pytorch").absolute()
    device = os.environ.get("TRIAGE_TORCH_DEVICE", "cuda")
    for setting, code in SETTINGS.items():
        folder = out / setting.replace(" ", "-")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "networks.py").write_text(NETWORKS.replace("{settings}", code))
        for name in ("unet", "lstm"):
            subprocess.run([sys.executable, "-c", EXPORT, name], cwd=folder, check=True, capture_output=True)
            for made in (name, f"{name}_off"):
                words = ["diagnose", f"{name}.onnx", "--inputs", f"{name}.npz", "--case", f"case-{made}",
                         "--target", f"torch:networks.py:{made},device={device}", "--json"]  # fmt: skip
                began = time.perf_counter()
                done = subprocess.run(
                    [sys.executable, "-c", "from tensortriage.cli import main; main()", *words],
                    cwd=folder, capture_output=True, text=True, check=False,
                )  # fmt: skip
                seconds = time.perf_counter() - began
                verdict = json.loads(done.stdout)["verdict"] if done.stdout.strip() else {"verdict": done.stderr[-400:]}
                said = f"{verdict['verdict']:22s} {verdict.get('summary', '')}"
                print(f"{setting:16s} {made:9s} {seconds:6.1f} s  {said}", flush=True)


if __name__ == "__main__":
    main()

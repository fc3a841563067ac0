"""PyTorch's settings as the target's precision.

What is right is what PyTorch documents: cuDNN may use TF32 by default, matrix products do not ("Numerical accuracy").
"""

import types

import pytest

from tensortriage_torch.engine import TorchEngine
from tensortriage_torch.worker.settings import computes_in

torch = pytest.importorskip("torch")
NETS = {
    "conv": lambda: torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU()),
    "lstm": lambda: torch.nn.LSTM(4, 4),
    "linear": lambda: torch.nn.Linear(4, 4),
}


@pytest.fixture
def settings(monkeypatch):
    monkeypatch.delenv("NVIDIA_TF32_OVERRIDE", raising=False)

    def of(*, cudnn=True, products="highest", enabled=True, autocast=""):
        matmul = types.SimpleNamespace(allow_tf32=products != "highest")
        backends = types.SimpleNamespace(
            cudnn=types.SimpleNamespace(allow_tf32=cudnn, enabled=enabled), cuda=types.SimpleNamespace(matmul=matmul)
        )
        return types.SimpleNamespace(
            nn=torch.nn,
            backends=backends,
            get_float32_matmul_precision=lambda: products,
            is_autocast_enabled=lambda kind: bool(autocast) and kind == "cuda",
            get_autocast_dtype=lambda kind: f"torch.{autocast}",
        )

    return of


@pytest.mark.parametrize(
    ("net", "given", "device", "word"),
    [
        ("conv", {}, "cuda", "tf32"),
        ("lstm", {}, "cuda:1", "tf32"),
        ("linear", {}, "cuda", "fp32"),
        ("linear", {"products": "high"}, "cuda", "tf32"),
        ("linear", {"products": "medium"}, "cuda", "tf32"),
        ("conv", {"cudnn": False}, "cuda", "fp32"),
        ("conv", {"enabled": False}, "cuda", "fp32"),
        ("conv", {}, "", "fp32"),
        ("conv", {"autocast": "float16"}, "cuda", "fp16"),
        ("linear", {"autocast": "bfloat16"}, "cuda", "bf16"),
        ("conv", {"autocast": "float16"}, "cpu", "fp32"),
    ],
)
def test_what_a_network_computes_in(settings, net, given, device, word):
    assert computes_in(settings(**given), NETS[net](), device) == word


def test_a_function_that_convolves_is_told_by_its_weights(settings):
    module = torch.nn.Module()
    module.weight = torch.nn.Parameter(torch.zeros(4, 3, 3, 3))
    assert computes_in(settings(), module, "cuda") == "tf32"


def test_an_exported_program_is_told_by_its_operators(settings):
    class Functional(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.flat = torch.nn.Parameter(torch.zeros(4 * 3 * 9))

        def forward(self, x):
            return torch.nn.functional.conv2d(x, self.flat.reshape(4, 3, 3, 3))

    program = torch.export.export(Functional(), (torch.zeros(1, 3, 8, 8),)).module()
    assert computes_in(settings(), program, "cuda") == "tf32"
    assert computes_in(settings(cudnn=False), program, "cuda") == "fp32"


def test_nvidia_switches_tf32_off_by_its_environment(settings, monkeypatch):
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "0")
    assert computes_in(settings(), NETS["conv"](), "cuda") == "fp32"


def test_the_settings_of_this_pytorch_can_be_read():
    assert computes_in(torch, NETS["conv"](), "cuda") == ("tf32" if torch.backends.cudnn.allow_tf32 else "fp32")
    assert computes_in(torch, NETS["conv"](), "cpu") == "fp32"


def test_the_engine_reads_them_back_once_the_users_file_has_run(tmp_path):
    (tmp_path / "net.py").write_text(
        "import torch\ntorch.backends.cudnn.allow_tf32 = False\n"
        "def off():\n    return torch.nn.Conv2d(3, 4, 3)\n"
        "def product():\n    torch.set_float32_matmul_precision('high')\n    return torch.nn.Linear(3, 4)\n"
    )
    engine, file = TorchEngine(), str(tmp_path / "net.py")
    assert engine.precision({"file": file, "attribute": "off", "device": "cuda"}) == "fp32"
    assert engine.precision({"file": file, "attribute": "product", "device": "cuda"}) == "tf32"
    assert engine.precision({"file": file, "attribute": "off", "device": "cuda", "dtype": "bf16"}) == "bf16"
    assert engine.precision({"file": file, "attribute": "none", "device": "cuda"}) == "tf32"  # it is said elsewhere


def test_on_the_cpu_nothing_is_asked(tmp_path):
    (tmp_path / "net.py").write_text("raise RuntimeError\n")
    assert TorchEngine().precision({"file": str(tmp_path / "net.py"), "attribute": "make"}) == "fp32"

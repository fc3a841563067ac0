"""Feeds from Python functions and from PyTorch: loaders and saved batches."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import models
from running_cli import triage
from tensortriage.engines.base import Limits
from tensortriage.errors import DataError, EngineMissing
from tensortriage.model.model import Model
from tensortriage.runs.feeds.feed_request import FeedRequest, feeds
from tensortriage_torch.batches import torch_feeds

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
TWO_INPUTS = """
    g (float[n, 2] x, float[n, 2] m) => (float[n, 2] y) { y = Add(x, m) }
"""
LOADER = """
import numpy as np
ONES = np.ones((1, 2), np.float32)
def tuples():
    yield ONES, 2 * ONES, "label"
    yield [3 * ONES, 4 * ONES]
def one():
    yield ONES
def short():
    yield (ONES,)
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "loader.py").write_text(LOADER)
    models.write(tmp_path / "two.onnx", TWO_INPUTS)
    return tmp_path


def fed(folder, *paths):
    return [dict(feed.tensors) for feed in feeds(FeedRequest(paths=paths), Model.load(folder / "two.onnx"))]


def test_a_function_yields_tuples_in_the_order_of_the_inputs(folder):
    found = fed(folder, f"{folder / 'loader.py'}:tuples")
    assert [(feed["x"][0, 0], feed["m"][0, 0]) for feed in found] == [(1, 2), (3, 4)]


def test_functions_and_files_follow_each_other(folder):
    np.savez(folder / "a.npz", x=np.zeros((1, 2), np.float32), m=np.full((1, 2), 9, np.float32))
    found = fed(folder, str(folder / "a.npz"), f"{folder / 'loader.py'}:tuples", str(folder / "a.npz"))
    assert [feed["m"][0, 0] for feed in found] == [9, 2, 4, 9]


def test_a_tuple_that_is_too_short_is_an_error(folder):
    with pytest.raises(DataError) as caught:
        fed(folder, f"{folder / 'loader.py'}:short")
    assert caught.value.slug == "script-not-feed"
    assert "order of the inputs" in caught.value.cure


def test_on_the_command_line(folder):
    done = triage("run", "two.onnx", "--onnxrt", "--inputs", "loader.py:tuples", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "random" not in done.stdout


def test_a_missing_batch(folder):
    with pytest.raises(DataError) as caught:
        fed(folder, str(folder / "absent.pt"))
    assert caught.value.slug == "feed-file-missing"


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="PyTorch is installed")
def test_a_batch_without_pytorch(folder):
    (folder / "batch.pt").write_bytes(b"")
    with pytest.raises(EngineMissing):
        fed(folder, str(folder / "batch.pt"))


@needs_torch
def test_what_torch_save_wrote(folder):
    code = (
        "import torch, pathlib\n"
        "one = torch.ones(1, 2)\n"
        "torch.save({'x': one, 'm': 2 * one}, 'dict.pt')\n"
        "torch.save([(one, 3 * one), (one, 4 * one)], 'list.pt')\n"
        "torch.save({'x': pathlib.Path('.')}, 'code.pt')\n"
        "torch.save({'x': torch.zeros(1).expand(2**29, 2), 'm': one}, 'endless.pt')\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True)
    found = fed(folder, str(folder / "dict.pt"), str(folder / "list.pt"))
    assert [feed["m"][0, 0] for feed in found] == [2, 3, 4]
    with pytest.raises(DataError) as caught:
        list(torch_feeds(Path(folder / "code.pt"), Model.load(folder / "two.onnx").inputs, Limits()))
    assert caught.value.slug == "torch-batch"
    with pytest.raises(DataError, match="expand from"):
        fed(folder, str(folder / "endless.pt"))

"""``triage polygraphy inspect model``: a model in Polygraphy's layout, for scripts that read it."""

import json

import pytest

import models
from tensortriage_polygraphy.command import polygraphy

TEXT = """g (float[4] x, int64[1] i, float[N] unused) => (float[n] y) <float[4] w = {1.5, -2, 0, 0}> {
    [scale] s = LeakyRelu<alpha=0.5>(x)
    [add] a = Add(s, w)
    [wide] y = Tile(a, i) }"""


@pytest.fixture
def path(tmp_path):
    return models.write(tmp_path / "m.onnx", TEXT)


def listed(path, *words):
    """Run ``triage polygraphy inspect model``."""
    polygraphy(["inspect", "model", str(path), *words], standalone_mode=False)


def test_the_layout_is_polygraphys_where_its_command_is(path, capsys):
    listed(path)
    text = capsys.readouterr().out
    assert text.startswith(f"[I] Loading model: {path}\n[I] ==== ONNX Model ====\n")
    assert "1.5" not in text
    assert not text.endswith("\n\n")
    listed(path, "--show", "weights")
    assert "1.5" in capsys.readouterr().out
    listed(path, "--list-unbounded-dds")
    assert capsys.readouterr().out.endswith("unbounded DDS: ['i']\n")
    listed(path, "--json")
    assert json.loads(capsys.readouterr().out)["nodes"] == 3


def test_inferred_shapes_are_shown_in_its_layout_too(path, capsys):
    listed(path, "--show", "layers")
    assert "a [dtype=float32, shape=(4,)]" not in capsys.readouterr().out
    listed(path, "--show", "layers", "--shape-inference")
    assert "a [dtype=float32, shape=(4,)]" in capsys.readouterr().out


def test_weights_in_other_files_are_not_read_where_that_is_said(tmp_path, capsys):
    path = models.with_external_data(tmp_path)
    listed(path, "--show", "weights")
    assert "31." in capsys.readouterr().out
    listed(path, "--show", "weights", "--ignore-external-data")
    text = capsys.readouterr().out
    assert "[E] Failed to load weights." in text
    assert "31." not in text

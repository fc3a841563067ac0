"""Files of OpenVINO through the command line: sound ones pass, and a wrong weight, scale or input is named."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import running_cli

ov = pytest.importorskip("openvino")
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MODEL, INPUTS = EXAMPLES / "digits_cnn.onnx", EXAMPLES / "digits.npz"
pytestmark = [pytest.mark.lengthy, pytest.mark.unbudgeted]


def triage(folder, command, file, *words, model=MODEL, inputs=INPUTS):
    """Return exit code and messages of a command."""
    target = f"openvino:file={file},precision=fp32"
    asked = [command, model, "--inputs", inputs, "--target", target, *words]
    done = running_cli.triage(*asked, cwd=folder)
    return done.returncode, done.stdout + done.stderr


def verdict_on(folder, file):
    triage(folder, "diagnose", file, "--case", str(folder / "case"), "--fresh")
    return json.loads((folder / "case/verdict.json").read_text())


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """Return a file with weights in float16, as ovc writes it."""
    path = tmp_path_factory.mktemp("sound") / "sound.xml"
    ov.save_model(ov.convert_model(str(MODEL)), str(path))
    return path


def with_weight(path, folder, change):
    """Return a copy of a file in which the largest stored weight is changed."""
    copy = folder / "changed.xml"
    shutil.copy(path, copy)
    content = bytearray(path.with_suffix(".bin").read_bytes())
    text = path.read_text()
    sizes = [(int(size), int(start)) for start, size in re.findall(r'offset="(\d+)" size="(\d+)"', text)]
    size, start = max(sizes)
    array = np.frombuffer(content, np.float16, size // 2, start)
    array[...] = change(array.copy())
    copy.with_suffix(".bin").write_bytes(content)
    return copy


def test_a_sound_file_passes_and_its_cost_is_told(tmp_path, sound):
    assert triage(tmp_path, "run", sound)[0] == 0
    verdict = verdict_on(tmp_path, sound)
    assert verdict["verdict"] == "rounding"
    assert any("stored in fp16" in step["answer"] for step in verdict["steps"])


def test_a_wrong_weight_is_named(tmp_path, sound):
    file = with_weight(sound, tmp_path, lambda array: np.roll(array, 1))
    assert triage(tmp_path, "run", file)[0] == 1
    verdict = verdict_on(tmp_path, file)
    assert verdict["verdict"] == "model-changed"
    assert verdict["culprits"][0]["op_type"] == "Conv"


def test_a_scale_baked_in_is_told_as_that(tmp_path):
    steps = ov.preprocess.PrePostProcessor(ov.convert_model(str(MODEL)))
    steps.input(0).preprocess().scale(16.0)
    ov.save_model(steps.build(), str(tmp_path / "scaled.xml"))
    verdict = verdict_on(tmp_path, tmp_path / "scaled.xml")
    assert verdict["verdict"] == "model-changed"
    assert "it takes 'image' divided by 16" in verdict["summary"]


def test_images_in_integers_are_refused_where_the_data_are_none(tmp_path):
    steps = ov.preprocess.PrePostProcessor(ov.convert_model(str(MODEL)))
    steps.input(0).tensor().set_element_type(ov.Type.u8)
    ov.save_model(steps.build(), str(tmp_path / "u8.xml"))
    shape = np.load(INPUTS)["image"].shape
    np.savez(tmp_path / "real.npz", image=np.full(shape, 0.5, np.float32))
    np.savez(tmp_path / "whole.npz", image=np.random.default_rng(0).integers(0, 255, shape).astype(np.float32))
    code, told = triage(tmp_path, "run", tmp_path / "u8.xml", inputs=tmp_path / "real.npz")
    assert code == 2
    assert "file-input-type" in told
    assert triage(tmp_path, "run", tmp_path / "u8.xml", inputs=tmp_path / "whole.npz")[0] == 0


def test_a_file_without_its_constants_is_an_error_of_use(tmp_path, sound):
    shutil.copy(sound, tmp_path / "alone.xml")
    for command in ("run", "diagnose"):
        code, told = triage(tmp_path, command, tmp_path / "alone.xml")
        assert code == 2
        assert "put the .bin next to the .xml file" in told

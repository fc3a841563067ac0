"""A model larger than the memory that may be used; what exceeds it is killed."""

import importlib.util
import sys
from pathlib import Path

import pytest

from running_cli import triage, verdict_in

pytestmark = pytest.mark.lengthy

SOURCE = Path(__file__).resolve().parents[2] / "bench" / "beyond_memory.py"
NODE = "block3/weights_node"


@pytest.fixture(scope="module")
def bench():
    spec = importlib.util.spec_from_file_location("bench_beyond_memory", SOURCE)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(SOURCE.parent))  # where a script finds its siblings
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(SOURCE.parent))
    return module


@pytest.fixture(scope="module")
def folder(bench, tmp_path_factory):
    made = tmp_path_factory.mktemp("decoder")
    bench.decoder(made, blocks=4, width=768)  # 28 MB of weights each
    (made / "faulty.py").write_text(bench.FAULTY)
    return made


@pytest.mark.slow
def test_the_faulty_block_is_found_and_diagnosed_within_the_limit(folder):
    target = f"script:faulty.py,kind=scale,node={NODE},amount=1.05"
    words = ["--target", target, "--memory-limit", "300M", "--case", "case", "--no-repro"]
    done = triage("diagnose", "decoder.onnx", *words, cwd=folder)
    assert done.returncode == 1, done.stderr
    found = verdict_in(folder / "case")
    assert found["verdict"] == "local-fault"
    assert found["culprits"][0]["node"] == NODE
    assert "run in isolation" in found["summary"]
    first, last = found["steps"][0], found["steps"][-1]
    assert "do not fit into" in first["answer"]
    assert "a fusion across a cut" in first["answer"]
    assert "reach the model's outputs" in last["question"]
    assert last["answer"].startswith("yes")
    assert (
        "cut behind &#39;" in (folder / "case" / "report.html").read_text() or "cut behind" in done.stdout + done.stderr
    )
    assert "case/blocks/" in " ".join(found["next"])

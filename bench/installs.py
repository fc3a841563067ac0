"""Every `triage engines install` line: does it end with an engine that works, or with what to do instead?

    python bench/installs.py [--python PYTHON ...] [--no-run] [--out FILE] [WORD ...]

Without words: those of docs, and the last three releases of each engine with one from a year ago. Each environment
is made in an empty data folder by the Python that is named (which has triage), then the engine runs a convolutional
network in it through `triage run`, and the folder is removed. One row each: works, or the sentence that refused it.
"""

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tensortriage_testing.models import conv_net, save_model

PROVIDERS = ("qnn", "nv_tensorrt_rtx")
DOCS = Path(__file__).parents[1] / "docs"
RELEASES = (
    "ncnn==1.0.20250503", "ncnn==1.0.20260114", "ncnn==1.0.20260526", "litert==1.4.0", "litert==2.0.3", "litert==2.1.6",
    "litert==2.2.0", "litert==2.3.0", "iree==3.3.0", "iree==3.11.0", "iree==3.12.0", "mnn==3.0.0", "mnn==3.5.0",
    "mnn==3.6.0", "tvm==0.25.0", "tvm==0.26.0", "tvm==0.27.0", "openvino==2024.0.0", "openvino==2026.3.1",
    "openvino==2026.4.0", "onnxruntime==1.17.3", "onnxruntime==1.30.0", "onnxruntime==1.31.1", "rknn==2.3.0",
    "rknn==2.3.2", "qnn==2.5.0", "qnn==2.6.0",
)  # fmt: skip
"""The three releases before the newest, as far as there are, and one from a year ago."""


def lines_of_docs() -> list[str]:
    """Return what docs install, each once."""
    found = re.findall(
        r"triage engines install ([a-z]\w*(?:==[\w.]+)?)", "".join(p.read_text() for p in DOCS.glob("*.md"))
    )
    return sorted(set(found) | {"onnxruntime", "torch"})


def told(words: list[str], env: dict[str, str]) -> tuple[int, dict[str, object]]:
    """Run a command; return its exit code and its document."""
    done = subprocess.run(
        [*words, "--json"], env=env, capture_output=True, text=True, check=False, cwd=tempfile.gettempdir()
    )
    lines = [line for line in done.stderr.splitlines() if "Traceback" in line]
    try:
        return done.returncode, json.loads(done.stdout) | ({"traceback": done.stderr[-600:]} if lines else {})
    except json.JSONDecodeError:
        return done.returncode, {"message": done.stderr[-600:]}


def row(python: str, word: str, model: Path, *, installed_only: bool) -> dict[str, object]:
    """Return what came of one line."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    folder = tempfile.mkdtemp(prefix="installs-")
    env = {**os.environ, "XDG_DATA_HOME": folder}
    triage = [python, "-m", "tensortriage"]
    try:
        code, made = told([*triage, "engines", "install", word], env)
        found = {"word": word, "python": python, "code": code}
        if code:
            found |= {"said": f"{made.get('slug')}: {made.get('message')}", "cure": made.get("cure")}
        else:
            found |= {"version": made["version"], "with": made["requirements"]}
            found["base"] = subprocess.run([made["python"], "-V"], capture_output=True, text=True, check=True).stdout
            if made["engine"] != "torch" and not installed_only:
                found |= ran(triage, word, made, model, env)
        found |= {"traceback": made["traceback"]} if "traceback" in made else {}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return found | {"cpu": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1)}


def ran(triage: list[str], word: str, made: dict[str, object], model: Path, env: dict[str, str]) -> dict[str, object]:
    """Run a model with all its layers on what was installed: found by name, or for another release by its Python."""
    engine, provider = ("onnxruntime", f"ep={made['engine']}") if made["engine"] in PROVIDERS else (made["engine"], "")
    options = [provider, f"worker={made['python']}" if "==" in word else ""]
    target = ":".join(filter(None, (str(engine), ",".join(filter(None, options)))))
    code, document = told([*triage, "run", str(model), "--target", target, "--onnx-outputs", "mark", "all"], env)
    found: dict[str, object] = {"target": target, "run": code}
    if "comparisons" in document:
        rows = [row for each in document["comparisons"] for row in each["comparison"]["rows"]]
        found["layers"] = len(rows)
        found["error"] = max(row["metrics"]["relative_rms_error"] for row in rows) if rows else None
        found["failures"] = document.get("failures")
    else:
        found["said"] = document.get("message")
    return found | ({"traceback": document["traceback"]} if "traceback" in document else {})


def main() -> None:
    """Print a line per row, and write them all."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--python", nargs="*", default=[sys.executable])
    arguments.add_argument("--out", type=Path, default=Path("installs.jsonl"))
    arguments.add_argument("--no-run", action="store_true", help="install only, which runs a small network")
    arguments.add_argument("words", nargs="*")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "small.onnx"
        save_model(conv_net(batch=1, blocks=1, classes=4), model)
        for python in given.python:
            for word in given.words or [*lines_of_docs(), *RELEASES]:
                found = row(python, word, model, installed_only=given.no_run)
                print(json.dumps(found), flush=True)
                with given.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()

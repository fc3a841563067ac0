"""Does `triage polygraphy` answer as Polygraphy does?

    python bench/side_by_side.py --polygraphy /path/to/venv/bin/polygraphy [--only REGEX] [--plain] [--answers FILE]

Both tools run the command lines of `side_by_side_lines.txt`, each in its own copy of one folder. A line is the same
when every step ends with the same exit code, the same files appear, and those have the same format and content: the
operators and the interface of a graph, names, types and values of tensors, the structure of any other JSON. What our
tool wrote is also read by Polygraphy, and the other way round. Polygraphy's answers are kept in ``--answers``: they are
made once. With ``--plain`` it is `triage` without the word `polygraphy`, which has exit codes and defaults of its own.

Polygraphy needs onnx, onnxruntime, onnx_graphsurgeon, sympy and onnxconverter_common next to it, and neither TensorRT.
"""

import argparse
import base64
import concurrent.futures
import io
import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from side_by_side_models import make_folder

LINES = Path(__file__).with_name("side_by_side_lines.txt")
TRIAGE = [sys.executable, "-c", "from tensortriage.cli import main; main()"]
SECONDS = 300
TOLERANCE = 1e-3
Answer = dict[str, Any]
_REPLAYED = {"state", "iteration_info", "success", "polygraphy_class"}


def lines() -> Iterator[tuple[str, str]]:
    """Yield command lines, each with the reason why it differs; an empty one where it should not."""
    for line in LINES.read_text().splitlines():
        if line and not line.startswith("#"):
            text, _, reason = line.removeprefix("!").partition("##")
            yield text.strip(), reason.strip()


def interface(value: onnx.ValueInfoProto) -> list[Any]:
    tensor = value.type.tensor_type
    return [value.name, tensor.elem_type, [dim.dim_value or dim.dim_param or "?" for dim in tensor.shape.dim]]


def describe_graph(path: Path) -> Answer | None:
    """Return what counts of an ONNX file; None for anything else."""
    try:
        model = onnx.load(path, load_external_data=False)
    except Exception:  # not a model
        return None
    if not model.ir_version or not model.HasField("graph"):
        return None
    graph = model.graph
    return {
        "kind": "onnx",
        "operators": dict(sorted(Counter(node.op_type for node in graph.node).items())),
        "inputs": sorted(map(interface, graph.input)),
        "outputs": sorted(map(interface, graph.output)),
        "weights": sorted([list(tensor.dims), tensor.data_type] for tensor in graph.initializer),
    }


def describe_json(item: object) -> Any:
    """Return what counts of a document: arrays by type, shape and mean size, without times."""
    if isinstance(item, dict) and item.get("polygraphy_class") == "ndarray":
        array = np.load(io.BytesIO(base64.b64decode(item["array"])))
        return ["array", str(array.dtype), list(array.shape), float(np.abs(array.astype(np.float64)).mean())]
    if isinstance(item, dict):
        return {key: describe_json(value) for key, value in sorted(item.items()) if key != "runtime"}
    if isinstance(item, list):
        return [describe_json(value) for value in item]
    if isinstance(item, str):
        return re.sub(r"-\d\d/\d\d/\d\d-.*", "", item)
    return item


def describe(path: Path) -> Any:
    """Return what counts of a file."""
    if not path.stat().st_size:
        return "empty"
    if (graph := describe_graph(path)) is not None:
        return graph
    try:
        document = json.loads(path.read_text())
    except ValueError:
        return "text" if path.suffix in (".py", ".log", ".txt", ".yaml") else "bytes"
    if isinstance(document, dict) and "lint_entries" in document:
        entries = [[each["level"], each["source"], each.get("nodes")] for each in document["lint_entries"]]
        summary = {word: sorted(names) for word, names in document["summary"].items()}
        return {"kind": "lint", "entries": entries, "summary": summary}
    if isinstance(document, dict) and any(key.startswith("_N") for key in document):
        return {"kind": "replay", "entries": sorted({key for entry in document.values() for key in entry} & _REPLAYED)}
    return describe_json(document)


def snapshot(folder: Path) -> Mapping[str, tuple[int, int]]:
    files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(folder)): (path.stat().st_size, path.stat().st_mtime_ns) for path in files}


def answer(command: Sequence[str], line: str, folder: Path, source: Path) -> Answer:
    """Run one line in a fresh copy of the folder and return exit codes, the last step's output, and new files."""
    shutil.copytree(source, folder)
    before, codes, output = snapshot(folder), [], ""
    python = command[0] if command[0] == sys.executable else str(Path(command[0]).with_name("python"))
    for step in line.split(" ;; "):
        words = [python if word == "PYTHON" else word for word in shlex.split(step)]
        own = words if words and words[0] == python else [*command, *words]
        try:
            done = subprocess.run(
                own, cwd=folder, capture_output=True, text=True, timeout=SECONDS, stdin=subprocess.DEVNULL
            )
            codes.append(done.returncode)
            output = done.stdout + done.stderr
        except subprocess.TimeoutExpired:
            codes.append(-1)
        if codes[-1]:
            break
    after = snapshot(folder)
    changed = {name: describe(folder / name) for name in sorted(after) if after[name] != before.get(name)}
    return {"codes": codes, "files": changed, "output": output[-2000:]}


def same(left: object, right: object) -> bool:
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float) and isinstance(right, float):
        return bool(np.isclose(left, right, rtol=TOLERANCE, atol=1e-5, equal_nan=True))
    return left == right


def difference(theirs: Answer, ours: Answer) -> str:
    """Return in what two answers differ, in a few words; an empty text when they are the same."""
    if theirs["codes"] != ours["codes"]:
        return f"exit codes {theirs['codes']}, here {ours['codes']}"
    names, mine = _names(theirs), _names(ours)
    if names != mine:
        return f"files {sorted(names - mine)} missing, {sorted(mine - names)} more"
    for key, content in theirs["files"].items():
        twin = next(value for name, value in ours["files"].items() if _stable(name) == _stable(key))
        if not same(content, twin):
            return f"{key}: {_shortened(content)} | here {_shortened(twin)}"
    return ""


def _stable(name: str) -> str:
    return re.sub(r"_\d\d-\d\d-\d\d_\d\d-\d\d-\d\d", "_TIME", name)


def _names(found: Answer) -> set[str]:
    return {_stable(name) for name in found["files"]}


def _shortened(content: object) -> str:
    return json.dumps(content)[:700]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--polygraphy", required=True, help="the program")
    parser.add_argument("--only", default="", help="lines that this pattern is found in")
    parser.add_argument("--answers", type=Path, default=Path(tempfile.gettempdir()) / "polygraphy-answers.json")
    parser.add_argument("--plain", action="store_true", help="without the word polygraphy")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--show", action="store_true", help="the last output of lines that differ")
    asked = parser.parse_args()
    known = json.loads(asked.answers.read_text()) if asked.answers.exists() else {}
    rows = [(line, reason) for line, reason in lines() if re.search(asked.only, line)]
    command = TRIAGE if asked.plain else [*TRIAGE, "polygraphy"]
    with tempfile.TemporaryDirectory() as place, concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
        source = Path(place, "source")
        make_folder(source)

        def both(numbered: tuple[int, str]) -> tuple[str, Answer, Answer]:
            number, line = numbered
            theirs = known.get(line) or answer([asked.polygraphy], line, Path(place, f"theirs{number}"), source)
            ours = answer(command, line, Path(place, f"ours{number}"), source)
            for who in ("theirs", "ours"):
                shutil.rmtree(Path(place, f"{who}{number}"), ignore_errors=True)
            return line, theirs, ours

        equal = explained = 0
        for number, (line, theirs, ours) in enumerate(pool.map(both, enumerate(line for line, _ in rows))):
            known[line] = theirs
            reason = rows[number][1]
            what = difference(theirs, ours)
            equal += not what
            explained += bool(what and reason)
            if what:
                print(f"{'known' if reason else 'DIFFERS'}: {line}\n    {what}" + (f"\n    {reason}" if reason else ""))
                if asked.show:
                    print("    theirs:", theirs["output"][-600:], "\n    here:", ours["output"][-600:])
            elif reason:
                print(f"no longer differs: {line}")
            sys.stdout.flush()
            asked.answers.write_text(json.dumps(known, indent=1))
    print(f"{equal} of {len(rows)} command lines the same ({100 * equal / max(len(rows), 1):.1f} %), "
          f"{explained} differ for a reason given, {len(rows) - equal - explained} without")  # fmt: skip
    return int(len(rows) > equal + explained)


if __name__ == "__main__":
    sys.exit(main())

"""Writes bench/gpu/RESULTS.md from what the steps noted: ``python bench/gpu/render.py OUT``."""

import json
import os
import sys
from pathlib import Path
from typing import Any

ORDER = (
    "conformance", "small", "plan", "transformer", "builds", "pinned", "guilty", "overflow", "kept", "reduce",
    "precision", "eight_bits", "resnet50", "crash",
)  # fmt: skip


LONGEST = 900


def rendered(out: Path) -> str:
    """Return the page."""
    records = {path.stem: json.loads(path.read_text()) for path in out.glob("*.json")}
    about = records.pop("about", {})
    lines = [
        "# TensorRT on a GPU",
        "",
        "Written by `bench/gpu/run_all.sh` (steps: `bench/gpu/steps.py`). Lanes of steps ran at the same time",
        "on one GPU, so seconds are an upper bound.",
        "",
        *(f"- {key}: {value}" for key, value in about.items()),
        "",
        "| step | what must hold | result | seconds |",
        "|---|---|---|---|",
    ]
    known = [name for name in ORDER if name in records]
    for name in known:
        record = records[name]
        what = record["what"].rstrip(".")
        lines.append(f"| {name} | {what} | {'holds' if record['ok'] else '**failed**'} | {record['seconds']} |")
    for name in known:
        lines += ["", f"## {name}", "", *_details(records[name])]
    text = "\n".join(lines) + "\n"
    for place, word in ((str(out.absolute()), "OUT"), (os.environ.get("TRIAGE_TRT_PYTHON", ""), "PYTHON")):
        text = text.replace(place, word) if place else text
    return text


def shown(value: Any) -> str:
    """Return a figure in at most `LONGEST` characters."""
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 4] + " ..."


def _details(record: dict[str, Any]) -> list[str]:
    lines = [f"    {command}" for command in record["commands"]]
    if lines:
        lines.append("")
    for key, value in record["figures"].items():
        if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            lines += [f"- {key}:", *(f"  - {shown(item)}" for item in value)]
        elif isinstance(value, dict) and value and all(isinstance(item, dict) for item in value.values()):
            lines += [f"- {key}:", *(f"  - {inner}: {shown(item)}" for inner, item in value.items())]
        else:
            lines.append(f"- {key}: {shown(value)}")
    if record["notes"]:
        lines.append(f"- failed: {record['notes']}")
    return lines


if __name__ == "__main__":
    Path(__file__).with_name("RESULTS.md").write_text(rendered(Path(sys.argv[1])))

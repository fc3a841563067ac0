"""What a step of the GPU proof keeps of the documents that commands print."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Figures = dict[str, Any]


def verdict_figures(report: Mapping[str, Any]) -> Figures:
    """Return the verdict of a diagnosis, its questions and what it cost."""
    verdict = report["verdict"]
    return {
        "verdict": verdict["verdict"],
        "summary": verdict["summary"],
        "culprits": [f"{c['op_type']} {c['node']}" for c in verdict["culprits"]][:5],
        "steps": [f"{s['question']} {s['answer']} ({s['seconds']} s)" for s in verdict["steps"]],
        "cost": verdict["cost"],
    }


def study_figures(study: Mapping[str, Any]) -> Figures:
    """Return how the builds of a study differ, and what was blamed."""
    keys = ("good", "bad", "unresolved", "distinct_outputs", "distinct_plans", "spread")
    seconds = [round(trial["seconds"], 1) for trial in study["trials"]]
    made_again = study["pinned"] or {}
    return {
        **{key: study[key] for key in keys},
        "build_seconds": seconds,
        "reasons": [trial["reason"] for trial in study["trials"]][:3],
        "pinned": {key: made_again.get(key) for key in ("same_outputs", "again_same")},
        "pinned_reason": (made_again.get("trial") or {}).get("reason", ""),
        "blame": study["blame"],
        "deployed": {key: (study["deployed"] or {}).get(key) for key in ("seen", "moved")},
    }


def least_sqnr_db(document: Mapping[str, Any]) -> float:
    """Return the smallest signal to noise ratio of an output."""
    rows = [row for item in document["comparisons"] for row in item["comparison"]["rows"]]
    found = [number(row["metrics"]["sqnr_db"]) for row in rows]
    return round(min((db if db == db else float("-inf") for db in found), default=float("-inf")), 1)


def first_input(path: Path) -> str:
    """Return the name of a model's first input that is no weight."""
    import onnx

    model = onnx.load(path, load_external_data=False)
    weights = {w.name for w in model.graph.initializer}
    return next(value.name for value in model.graph.input if value.name not in weights)


def number(value: Any) -> float:
    """Return a number of a JSON document, where null stands for NaN."""
    return float(value) if value is not None else float("nan")


def require(condition: Any, figures: Figures) -> None:
    """Raise an AssertionError that tells the figures unless a condition holds."""
    if not condition:
        raise AssertionError(json.dumps(figures)[:1500])

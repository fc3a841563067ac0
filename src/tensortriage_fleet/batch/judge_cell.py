"""Is a cell as expected? And a command's document in one sentence."""

import fnmatch
import json
import math
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tensortriage.sdk import Finished, count, magnitude, read_regular
from tensortriage_fleet.batch.batch_file import Expectation
from tensortriage_fleet.batch.batch_result import CellEnding
from tensortriage_fleet.findings.finding import BEYOND, findings_of

KEPT_CODES = frozenset({0, 1, 4})
"""Exit codes that describe the model; others may be different next time, so that such cells run again."""
ENGINE_MISSING = 3
MEANINGS = {
    0: "nothing wrong",
    1: "a problem",
    2: "bad input",
    ENGINE_MISSING: "an engine that is missing",
    4: "no answer",
    130: "interrupted",
}


def ending_of(finished: Finished, document: Path) -> CellEnding:
    """Return how a command ended, from its exit code and the document it wrote to stdout."""
    code = finished.code
    if code is None:
        return CellEnding(None, finished.seconds, "", "ended, because it took longer than its time limit")
    data = document_of(document)
    verdict, summary, culprit = _said(data)
    if not summary:
        if code < 0:
            summary = f"killed by {signal.Signals(-code).name}"
        else:
            summary = finished.printed.last_words() or MEANINGS.get(code, f"exit code {code}")
    return CellEnding(code, finished.seconds, verdict, summary, culprit, findings_of(data))


def misfit(rule: Expectation | None, ending: CellEnding) -> str:
    """Return why an ending is not as expected; empty when it is."""
    if ending.code is None or ending.code < 0:
        return ending.summary
    got = ending.verdict or MEANINGS.get(ending.code, f"exit code {ending.code}")
    verdicts, codes = _verdicts(rule), _codes(rule)
    got += f" at {ending.culprit}" if ending.culprit else ""
    if verdicts and ending.verdict not in verdicts:
        return f"{got} (expected: {' or '.join(verdicts)})"
    if not verdicts and ending.code not in codes:
        wanted = " or ".join(MEANINGS.get(code, f"exit code {code}") for code in codes)
        return f"{got} (expected: {wanted})" + (f": {ending.summary}" if ending.summary else "")
    culprit = rule.culprit if rule is not None else ""
    if culprit and not fnmatch.fnmatchcase(ending.culprit, culprit):
        return f"culprit {ending.culprit or 'none'} (expected: {culprit})"
    return ""


def expected_words(rule: Expectation | None) -> str:
    """Return the expectation, in words."""
    if rule is not None and rule.skip:
        return "skipped"
    words = " or ".join(_verdicts(rule)) or " or ".join(
        MEANINGS.get(code, f"exit code {code}") for code in _codes(rule)
    )
    if rule is not None and rule.culprit:
        words += f", culprit {rule.culprit}"
    tolerances = (("atol", rule.atol), ("rtol", rule.rtol)) if rule is not None else ()
    return words + "".join(f", {word} {value}" for word, value in tolerances if value is not None)


def _verdicts(rule: Expectation | None) -> tuple[str, ...]:
    if rule is None:
        return ()
    return (rule.verdict,) if isinstance(rule.verdict, str) else rule.verdict


def _codes(rule: Expectation | None) -> tuple[int, ...]:
    if rule is None:
        return (0,)
    if rule.match is not None:
        return (0,) if rule.match else (1,)
    if rule.exit == ():
        return (0, 1, 4) if rule.culprit else (0,)
    return (rule.exit,) if isinstance(rule.exit, int) else rule.exit


def document_of(path: Path) -> Mapping[str, Any]:
    """Return the document in a file; empty where there is none."""
    try:
        data = json.loads(read_regular(path))
    except (OSError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def _said(data: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return verdict or slug, one sentence, and the first culprit of a document; empty for missing ones."""
    kind = str(data.get("format", "")).partition("/")[0]
    if kind == "tensortriage.report":
        verdict = data["verdict"]
        words = ": ".join(filter(None, (verdict.get("headline", ""), verdict["summary"])))
        return verdict["verdict"], words, next((c["node"] for c in verdict["culprits"]), "")
    if kind == "tensortriage.error":
        return data["slug"], data["message"], ""
    if kind == "tensortriage.run":
        return "", _run_words(data), ""
    if kind == "tensortriage.lint":
        found = [finding["severity"] for finding in data["findings"]]
        return "", ", ".join(count(found.count(word), word) for word in dict.fromkeys(found)) or "no findings", ""
    if kind == "tensortriage.consistency":
        outcomes = [answer["outcome"] for answer in data["answers"]]
        return "", ", ".join(f"{outcomes.count(word)} {word}" for word in dict.fromkeys(outcomes)), ""
    if kind == "tensortriage.reduction":
        return (
            "",
            f"{count(len(data['kept']), 'node')} of {data['nodes_before']} in {count(data['checks'], 'check')}",
            "",
        )
    if kind == "tensortriage.precision":
        return "", f"{count(len(data['kept']), 'node')} kept, {count(data['builds'], 'build')}", ""
    return "", "", ""


def _run_words(data: Mapping[str, Any]) -> str:
    """Return the worst fault, else the number of tensors within their limits."""
    rows = [row for found in data["comparisons"] for row in found["comparison"]["rows"]]
    found = findings_of(data)
    if found:
        worst = max(found, key=lambda finding: (finding.rule != BEYOND, finding.ratio or 0.0))
        beyond = sum(not row["judgement"]["within"] for row in rows)
        if worst.rule != BEYOND:
            return f"{worst.title}: {worst.message}"
        made_by = f" (made by {worst.op})" if worst.op else ""
        return f"{worst.output_words}{made_by}; {beyond} of {count(len(rows), 'tensor')} outside the limit"
    figures = [float(row["figure"]) for row in rows if row["figure"] is not None]
    largest = max(figures, key=lambda figure: math.inf if math.isnan(figure) else figure, default=None)
    text = f"0 of {count(len(rows), 'tensor')} outside the limit" if rows else "nothing compared"
    return text if largest is None else f"{text}, largest figure {magnitude(largest)}"

"""Writes docs/atlas from what bench/atlas.py found: one page per engine and version, and the repros of what is wrong.

    python bench/atlas_pages.py FILE.jsonl ... --docs docs/atlas [--repros 12]

Networks stand on one page, networks.md, engine beside engine. A page has a table of what is wrong with verdict and
repro, what is approximated, what is refused by operator, and, where an earlier version of the engine was asked the
same, what changed. Repros are ONNX's own tests of one operator, or two, with the inputs that ONNX ships and shapes
as constants. Nothing but pages and repros is written: the index is by hand, with the table that is printed.
"""

import argparse
import collections
import json
import re
import tempfile
from pathlib import Path

import numpy as np
import onnx
from atlas import backend
from backend_nodes import cases

MOST_OPS = 2
"""Cases of more operators are listed without a repro."""
SHOWN = 150
"""Characters of a sentence in a table."""
Rows = list[dict]
NETWORK = "network "
REFUSED = ("refused", "crashed", "hung")
NETWORKS_INTRODUCTION = """\
Exported networks, small and with weights that were never trained, and the light models of the onnx package, whose
convolutions have drawn weights: what `python bench/networks DIR atlas --numbered` writes, asked by
`python bench/atlas.py --networks DIR`. A figure alone is the relative error of the worst output where that is within
ten times what
rounding in float32 costs. Beside a verdict of `diagnose` it is what the verdict is about. In **bold** is what
rounding, approximation and freedoms do not explain; *wrong* is where an op or a piece is named, float64
contradicts, and the error is above ten times what rounding every result to the engine's format costs. An empty cell
was not asked."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--docs", type=Path, required=True)
    parser.add_argument("--repros", type=int, default=12, help="most repros of one engine")
    arguments = parser.parse_args()
    by_engine: dict[str, Rows] = collections.defaultdict(list)
    every = [json.loads(line) for file in arguments.files for line in file.read_text().splitlines()]
    if networks := [row for row in every if row["case"].startswith(NETWORK)]:
        (arguments.docs / "networks.md").write_text(networks_page(networks))
    for row in every:
        if not row["case"].startswith(NETWORK):
            by_engine[row["engine"]].append(row)
    kept = {engine: chosen(rows, arguments.repros) for engine, rows in by_engine.items()}
    write_repros(kept, arguments.docs / "repros")
    for engine, rows in sorted(by_engine.items()):
        older = next((other for other in sorted(by_engine) if other < engine and family(other) == family(engine)), "")
        page = page_of(engine, rows, {row["case"] for row in kept[engine]}, older, by_engine.get(older, []))
        (arguments.docs / f"{engine}.md").write_text(page)
    print(summary(by_engine))


def networks_page(rows: Rows) -> str:
    """Return the page of whole networks: a table of engines by networks, then what is not well."""
    engines = list(dict.fromkeys(row["engine"] for row in rows))
    names = list(dict.fromkeys(row["case"] for row in rows))
    cells = {(row["case"], row["engine"]): cell(row) for row in rows}
    lines = ["# Whole networks", "", NETWORKS_INTRODUCTION, ""]
    lines += ["| network | " + " | ".join(engines) + " |", "|---" * (len(engines) + 1) + "|"]
    lines += [
        f"| {name.removeprefix(NETWORK)} | " + " | ".join(cells.get((name, engine), "") for engine in engines) + " |"
        for name in names
    ]
    for title, outcome in (("Wrong", "wrong"), ("Not decided", "undecided")):
        found = [row for row in rows if row["outcome"] == outcome]
        lines += ["", f"## {title}", "", *(told(row) for row in found)] if found else []
    reasons: dict[str, list[str]] = collections.defaultdict(list)
    for row in rows:
        if row["outcome"] in REFUSED:
            last = " ".join(part for part in row["detail"].split(" | ")[-2:])
            reason = short(re.sub(r"\[[\d:]+\] :\d+: ", "", last))
            reasons[f"{row['engine']}: {reason}"].append(row["case"].removeprefix(NETWORK))
    lines += ["", "## Refused", "", *(f"- {reason} ({', '.join(names)})" for reason, names in reasons.items())]
    return "\n".join(lines).rstrip() + "\n"


def cell(row: dict) -> str:
    """Return what an engine made of a network, in a word and a figure."""
    if row["outcome"] in REFUSED:
        return row["outcome"]
    figure = error_of_row(row)
    if row["outcome"] == "agrees":
        return figure
    return f"`{row['verdict']}` {figure}" if row["outcome"] == "approximated" else f"**`{row['verdict']}`** {figure}"


def told(row: dict) -> str:
    """Return a line on what is not well."""
    reason = f"`{row['verdict']}`: {row['summary']}"
    return f"- {row['case'].removeprefix(NETWORK)} on {row['engine']}: {short(reason, 2 * SHOWN)}"


def family(engine: str) -> str:
    """Return an engine without its version."""
    return engine.rpartition("-")[0]


def wrong(rows: Rows) -> Rows:
    """Return the wrong rows by operator, the largest error of each first."""
    found = [row for row in rows if row["outcome"] == "wrong"]
    return sorted(found, key=lambda row: (row["ops"], -row["error"], row["case"]))


def chosen(rows: Rows, most: int) -> Rows:
    """Return the rows that get a repro: small models, as many operators as possible."""
    small = [row for row in wrong(rows) if len(row["ops"]) <= MOST_OPS]
    first: dict[tuple[str, ...], dict] = {}
    for row in small:
        first.setdefault(tuple(row["ops"]), row)
    rest = [row for row in small if row not in first.values()]
    return [*first.values(), *rest][:most]


def write_repros(kept: dict[str, Rows], folder: Path) -> None:
    """Write model and inputs of every kept row."""
    wanted = {row["case"] for rows in kept.values() for row in rows}
    with tempfile.TemporaryDirectory() as name:
        for case in backend([case for case in cases(1, "") if case.name in wanted], Path(name)):
            for engine, rows in kept.items():
                if any(row["case"] == case.name for row in rows):
                    place = folder / engine / f"{case.name.removeprefix('test_')}.onnx"
                    place.parent.mkdir(parents=True, exist_ok=True)
                    onnx.save(onnx.load(case.path), place)
                    np.savez(place.with_suffix(".npz"), **case.feed)


def page_of(engine: str, rows: Rows, repros: set[str], older: str, before: Rows) -> str:
    """Return a page as Markdown."""
    counts = collections.Counter(row["outcome"] for row in rows)
    lines = [f"# {engine}", "", f"{len(rows)} of ONNX's backend tests: {words(counts)}.", "", "## Wrong", ""]
    lines += (
        ["ONNX Runtime is with the data that ONNX ships, this engine is not.", ""] if wrong(rows) else ["Nothing.", ""]
    )
    if wrong(rows):
        lines += ["| test | operators | relative error | `diagnose` says | repro |", "|---|---|---|---|---|"]
        lines += [
            f"| `{row['case'].removeprefix('test_')}` | {', '.join(row['ops'])} | {error_of_row(row)} | "
            f"`{row['verdict']}`: {short(row['summary'])} | {repro(engine, row) if row['case'] in repros else ''} |"
            for row in wrong(rows)
        ]
    lines += ["", *listed("Approximated, or rounded as its format does", rows, "approximated")]
    lines += listed(
        "Not decided", rows, "undecided", "They differ, and the data that ONNX ships do not say who is right."
    )
    lines += listed("Crashed or hung", rows, "crashed", outcomes=("crashed", "hung"))
    lines += ["## Refused", "", ", ".join(f"{kind} ({count})" for kind, count in refused(rows)) or "Nothing.", ""]
    if older:
        lines += [f"## Against {older}", "", *changed(rows, before)]
    return "\n".join(lines).rstrip() + "\n"


def error_of_row(row: dict) -> str:
    """Return the error, or that the shape is another one."""
    return "another shape, or not finite" if row["error"] == float("inf") else f"{row['error']:.1e}"


def repro(engine: str, row: dict) -> str:
    """Return a link to the model."""
    name = row["case"].removeprefix("test_")
    return f"[model](repros/{engine}/{name}.onnx), [inputs](repros/{engine}/{name}.npz)"


def listed(title: str, rows: Rows, outcome: str, words: str = "", outcomes: tuple[str, ...] = ()) -> list[str]:
    """Return a section with a line per row."""
    found = sorted((row for row in rows if row["outcome"] in (outcomes or (outcome,))), key=lambda row: row["case"])
    if not found:
        return []
    text = [f"- `{row['case'].removeprefix('test_')}`: {short(row['summary'] or row['detail'])}" for row in found]
    return [f"## {title}", "", *([words, ""] if words else []), *text, ""]


def refused(rows: Rows) -> list[tuple[str, int]]:
    """Return how often models of an operator are refused."""
    kinds = collections.Counter(row["ops"][0] for row in rows if row["outcome"] == "refused" and len(row["ops"]) == 1)
    kinds["models of several operators"] = sum(row["outcome"] == "refused" and len(row["ops"]) > 1 for row in rows)
    return [(kind, count) for kind, count in kinds.most_common() if count]


def changed(rows: Rows, before: Rows) -> list[str]:
    """Return what an earlier version made otherwise, of the cases that both were asked."""
    then = {row["case"]: row["outcome"] for row in before}
    pairs = [(row["case"], then[row["case"]], row["outcome"]) for row in rows if row["case"] in then]
    lines = [f"Both were asked {len(pairs)} tests.", ""]
    for title, good in (("Mended", False), ("New faults", True)):
        found = sorted(
            f"`{case.removeprefix('test_')}` ({old}, now {new})"
            for case, old, new in pairs
            if old != new and ((new == "wrong" and old == "agrees") if good else (old == "wrong" and new == "agrees"))
        )
        lines += [f"{title}: {', '.join(found) or 'none'}.", ""]
    return lines


def words(counts: collections.Counter[str]) -> str:
    """Return counts in words, the largest first."""
    return ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common())


def short(text: str, most: int = SHOWN) -> str:
    """Return the beginning of a sentence that a table can hold."""
    plain = " ".join(text.replace("|", "/").split())
    for word in plain.split():
        if "worker=" in word or word.startswith("/"):
            plain = plain.replace(word, "the target" if "worker=" in word else "...")
    return plain if len(plain) <= most else plain[: most - 3] + "..."


def summary(by_engine: dict[str, Rows]) -> str:
    """Return the table of the index."""
    kinds = ("agrees", "approximated", "wrong", "undecided", "refused", "crashed")
    lines = ["| engine | tests | " + " | ".join(kinds) + " |", "|---" * (len(kinds) + 2) + "|"]
    for engine, rows in sorted(by_engine.items()):
        counts = collections.Counter(row["outcome"] for row in rows)
        counts["crashed"] += counts["hung"]
        lines.append(
            f"| [{engine}]({engine}.md) | {len(rows)} | " + " | ".join(str(counts[kind]) for kind in kinds) + " |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()

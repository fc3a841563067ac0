"""Write docs/polygraphy-options.md: what becomes of every option of every command of Polygraphy 0.53.6.

The lists come from tests/data/polygraphy/options.json, the answers from our own parsers and table of refusals.
"""

import json
from pathlib import Path

import click

from tensortriage.cli import cli
from tensortriage_polygraphy.not_offered import refusal, refused_command

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/polygraphy-options.md"
DIFFERS = {
    ("", "--compare-func-script"): "the function takes a name and two arrays: compare_outputs(name, reference, target)",
    ("", "--onnx-outputs-by-type"): "adds to --onnx-outputs instead of replacing it",
    ("", "--layer-precisions"): "float32 only: which nodes to keep",
    ("", "--sequential-runners"): "without effect: runners never overlap in time",
    ("", "--use-subprocess"): "without effect: untrusted engines always have a process of their own",
    ("", "--input-shapes"): "the same; --inputs names data files as well",
    ("", "--pool-limit"): "the workspace only",
    ("", "--trt-min-shapes"): "one profile",
    ("", "--trt-opt-shapes"): "one profile",
    ("", "--trt-max-shapes"): "one profile",
    ("", "--save-debug-replay"): "also says which model and check it belongs to",
    ("", "--load-debug-replay"): "one of another model or check is refused",
    ("", "--save-tactics"): "a format of its own; Polygraphy's replays are read",
    ("", "--index-tolerance"): "see --compare indices",
    ("debug precision", "--iter-artifact"): "a typed ONNX model, which any engine can judge, not an engine",
    ("debug build", "--save-debug-replay"): "without effect: the case keeps what is known of every build",
    ("debug build", "--load-debug-replay"): "without effect: the case keeps what is known of every build",
    ("convert", "--convert-to"): "onnx and trt; onnx-like-trt-network is refused",
}
"""What an option of the same name does otherwise."""
HEAD = """# Every option of Polygraphy

What becomes of each option of Polygraphy 0.53.6: *same* is taken with its meaning, *differs* is taken and
says how, *accepted* changes nothing here for the
reason given, *refused* ends the command with this sentence. What differs in spite of the same name is told in
[Coming from Polygraphy](coming-from-polygraphy.md). This page is written by `docs/make_polygraphy_options.py`.
"""


def find(words: str) -> click.Command | None:
    """Return our command of these words; None when there is none."""
    found: click.Command | None = cli
    for word in words.split():
        found = found.get_command(click.Context(found), word) if isinstance(found, click.Group) else None
    return found


def answer(command: str, names: list[str]) -> str:
    """Return what becomes of an option."""
    ours = find(command)
    assert ours is not None
    mine = {word: parameter for parameter in ours.params for word in (*parameter.opts, *parameter.secondary_opts)}
    other = next((DIFFERS[key] for name in names for key in ((command, name), ("", name)) if key in DIFFERS), "")
    if names[0] in mine and other:
        return f"differs: {other}"
    if names[0] in mine:
        text = getattr(mine[names[0]], "help", "") or ""
        return f"accepted: {text.removeprefix('Accepted; ').removeprefix('Accepted: ')}" if _no_effect(text) else "same"
    error = refusal(command, names[0])
    assert error is not None, (command, names)
    return f"refused: {error.message.partition(': ')[2]}; {error.cure}".replace("|", "/")


def _no_effect(text: str) -> bool:
    return text.startswith("Accepted")


def page() -> str:
    """Return the page."""
    parts = [HEAD]
    for command, options in json.loads((ROOT / "tests/data/polygraphy/options.json").read_text()).items():
        parts.append(f"\n## {command}\n")
        if find(command) is None:
            error = next(error for word in command.split() if (error := refused_command(word)) is not None)
            parts.append(f"Refused: {error.message.partition(': ')[2]}; {error.cure}.\n")
            continue
        rows = [(names, answer(command, names)) for names, *_ in options if names[0].startswith("-")]
        same = [", ".join(f"`{name}`" for name in names) for names, text in rows if text == "same"]
        parts.append(f"Same: {', '.join(same)}.\n")
        others = [(names, text) for names, text in rows if text != "same"]
        if others:
            parts.append("| option | |\n|---|---|")
            parts += [f"| {', '.join(f'`{name}`' for name in names)} | {text} |" for names, text in others]
            parts.append("")
    return "\n".join(parts).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

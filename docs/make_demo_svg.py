"""Draw docs/demo.svg: what ``triage demo`` prints, as a picture of a terminal.

    python docs/make_demo_svg.py

The demo runs in this repository's folder, as ``make demo`` does, so that the paths it prints are those a reader sees.
The picture embeds no font and loads nothing.
"""

import io
import re
import shutil
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

REPOSITORY = Path(__file__).resolve().parents[1]
CASE = REPOSITORY / "triage-case-demo"
WIDTH = 100
THEME = TerminalTheme(
    (24, 26, 31), (214, 217, 224),
    [(24, 26, 31), (232, 104, 104), (126, 193, 122), (222, 184, 108), (112, 164, 232), (198, 140, 220), (98, 190, 198),
     (214, 217, 224)],
)  # fmt: skip
STYLES = (
    (r"^\$ .*", "bold"),
    (r"^\? ", "bold cyan"),
    (r"[╭╮╰╯─│]+", "red"),
    (r"✗ [\w-]+", "bold red"),
    (r"^(Culprits|Outputs|Next)$", "bold"),
    (r"OUTSIDE", "red"),
    (r"^  (no: |yes: output ).*", "yellow"),
)
"""Patterns of a line and their styles: no terminal, no colours of the demo's own."""

FORMAT = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img">
<title>triage demo: one command, one verdict</title>
<style>
.{unique_id}-matrix {{
    font-family: ui-monospace, "SFMono-Regular", Menlo, Consolas, "DejaVu Sans Mono", monospace;
    font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def demo() -> str:
    """Run the demo from scratch and return what it prints, below the command."""
    shutil.rmtree(CASE, ignore_errors=True)
    command = [sys.executable, "-c", "from tensortriage.cli import main; main()", "demo"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    shutil.rmtree(CASE, ignore_errors=True)
    return "$ triage demo\n" + done.stdout


def main() -> None:
    """Write the picture."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), highlight=False, emoji=False)
    for line in demo().splitlines():
        text = Text(line)
        for pattern, style in STYLES:
            text.highlight_regex(re.compile(pattern), style)
        console.print(text)
    svg = console.export_svg(title="triage demo", theme=THEME, code_format=FORMAT, unique_id="triage-demo")
    (REPOSITORY / "docs/demo.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()

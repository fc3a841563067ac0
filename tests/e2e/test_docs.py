"""The pages say what the program does: commands shown are run, names shown exist, and nothing that exists is left out.

A ``sh`` block of the README or of a page in docs/ is run line by line in a scratch folder in which ``examples`` is the
folder of the examples; blocks of one page share that folder. What comes before and after a block says more:

    <!-- exit: 1 -->            the exit code of its last line; all other lines end with 0
    <!-- not run: REASON -->    the block is only shown
    ```text                     directly below: lines that the block printed, whatever the numbers; ... leaves some out
    ```python  # NAME.py        a file that the commands of the page use
    <!-- needs: PACKAGE -->   first line of a page whose commands are run only where that is installed

Commands run in this process, as in the test of docs/feeds.md: starting Python for each would take longer than all else.
"""

import ast
import dataclasses
import html
import importlib.util
import os
import re
import shlex
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import click
import pytest

from affected import changed_files
from machine import CRASH, openvino_crashes
from running_cli import triage
from tensortriage.cli import cli, main
from tensortriage.cli.lazy import LazyGroup
from tensortriage.compare.comparison import Comparison, Row
from tensortriage.compare.judgement.judgement import Judgement
from tensortriage.compare.metrics.tensor_metrics import Metrics
from tensortriage.diagnose.state.layer_rows import LayerRow, OutputRow
from tensortriage.diagnose.state.verdict import Cost, Culprit, Step, Verdict, VerdictKind
from tensortriage.engines.base import Region, Session
from tensortriage.engines.registry import create, known
from tensortriage.engines.spec import EngineSpec
from tensortriage.overview import COMMANDS
from tensortriage.report.document import Report
from tensortriage.report.run_result import CompareResult
from tensortriage.runs.case import CaseFacts, FeedFacts, ModelFacts
from tensortriage.values.dtype import Precision
from tensortriage_testing import FaultKind, FaultyEngine

REPOSITORY = Path(__file__).resolve().parents[2]
README = REPOSITORY / "README.md"
PAGES = [README, REPOSITORY / "CONTRIBUTING.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
CHANGED = changed_files()
"""Of these pages `make test` runs the commands; those of the others are lengthy."""
BLOCK = re.compile(
    r"(?:<!-- exit: (?P<exit>\d+) -->\n+)?(?:<!-- not run: (?P<reason>[^\n]+) -->\n+)?"
    r"^```(?P<language>\w+)\n(?P<code>.*?)^```$(?:\n\n?```text\n(?P<shown>.*?)^```$)?",
    re.DOTALL | re.MULTILINE,
)
NUMBER = re.compile(r"[+-]?\d+(\.\d+)?(e[+-]?\d+)?")
SECONDS = re.compile(r"\s+\(\d+\.\d s\)$")
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
FIELD_TABLES = (
    Verdict, Culprit, Step, Cost, LayerRow, OutputRow, CaseFacts, ModelFacts, FeedFacts, CompareResult, Comparison,
    Row, Judgement, Metrics, Report,
)  # fmt: skip


def text_of(page):
    return page.read_text(encoding="utf-8")


def all_text():
    return "\n".join(text_of(page) for page in PAGES)


def blocks_of(page, language):
    return [match for match in BLOCK.finditer(text_of(page)) if match["language"] == language]


def plain(line):
    """Return a line without its numbers, seconds, and the widths of columns and frames."""
    return " ".join(NUMBER.sub("#", SECONDS.sub("", line)).replace("─", "").split())


# --- what is shown works ----------------------------------------------------------------------------------------------


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    (tmp_path / "examples").symlink_to(REPOSITORY / "examples", target_is_directory=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    return tmp_path


def run_line(line, folder, monkeypatch, capfd):
    """Run one command; return its exit code and what it printed."""
    words = shlex.split(line, comments=True)
    redirected = words[-1] if words[-2:-1] == [">"] else ""
    words = words[:-2] if redirected else words
    if words[0] == "python":
        done = subprocess.run(
            [sys.executable, *words[1:]], cwd=folder, capture_output=True, text=True, timeout=60, check=False
        )
        return done.returncode, done.stdout + done.stderr
    assert words[0] == "triage", f"only triage and python can be run: {line}"
    if words[1] in ("batch", "baseline"):  # they start commands, which are forks where they are one
        done = triage(*words[1:], cwd=folder)
        code, out, err = done.returncode, done.stdout, done.stderr
    else:
        monkeypatch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit) as ended:
            main(words[1:])
        code, (out, err) = ended.value.code, capfd.readouterr()
    if redirected:
        (folder / redirected).write_text(out, encoding="utf-8")
    return code, out + err


@pytest.mark.slow
@pytest.mark.unbudgeted
@pytest.mark.parametrize(
    "page",
    [page if page in CHANGED else pytest.param(page, marks=pytest.mark.lengthy) for page in PAGES],
    ids=lambda page: page.name,
)
def test_commands_do_what_the_page_says(page, scratch, monkeypatch, capfd):
    if (needs := re.match(r"<!-- needs: (\w+) -->", text_of(page))) and importlib.util.find_spec(needs[1]) is None:
        pytest.skip(f"{needs[1]} is not installed")
    for block in blocks_of(page, "python"):
        name = re.match(r"# (\w+\.py)\n", block["code"])
        if name:
            (scratch / name[1]).write_text(block["code"], encoding="utf-8")
    for block in blocks_of(page, "sh"):
        if block["reason"] or (CRASH.name in block["code"] and not openvino_crashes()):
            continue
        lines = block["code"].replace("\\\n", " ").strip().splitlines()
        printed = ""
        for line in lines:
            code, output = run_line(line, scratch, monkeypatch, capfd)
            printed += output
            expected = int(block["exit"] or 0) if line is lines[-1] else 0
            assert code == expected, f"{line}\n{output}"
        seen = {plain(line) for line in printed.splitlines()}
        for line in (block["shown"] or "").splitlines():
            assert line == "..." or plain(line) in seen, f"{lines} no longer prints\n{line}\nbut\n{printed}"


@pytest.mark.lengthy
def test_the_picture_shows_what_the_demo_prints(scratch, monkeypatch, capfd):
    _, printed = run_line("triage demo", scratch, monkeypatch, capfd)
    picture = text_of(REPOSITORY / "docs/demo.svg")
    texts = [re.sub(r"<[^>]+>", "", part) for part in re.findall(r"<text.*?</text>", picture)]
    shown = plain(html.unescape(" ".join(texts)))
    told = [line for line in printed.splitlines() if line.startswith("?") or "range-overflow" in line]
    assert len(told) > 5
    for line in told:
        assert plain(line.strip("│ ")) in shown, "run docs/make_demo_svg.py again"


def test_the_picture_needs_nothing_else():
    picture = text_of(REPOSITORY / "docs/demo.svg")
    assert set(re.findall(r"https?://[^\s\"')]+", picture)) <= {"http://www.w3.org/2000/svg"}
    assert "@font-face" not in picture
    assert not re.search(r"(?<![\w.])/(home|root|work|tmp|usr|builds)/", picture)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in LINK.findall(text_of(page)):
        if target.startswith(("http:", "https:")):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{page.name} links to {target}"
        if anchor:
            titles = re.findall(r"^#+ (.*)$", text_of(file), re.MULTILINE)
            assert anchor in {anchor_of(title) for title in titles}, f"{page.name} links to {target}"


def anchor_of(title):
    """Return the anchor that a heading gets on the usual forges."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def test_every_page_is_on_the_map():
    listed = {target.partition("#")[0] for target in LINK.findall(text_of(REPOSITORY / "docs/index.md"))}
    pages = {page.name for page in PAGES if page.parent.name == "docs"} - {"index.md"}
    assert not pages - listed, "docs/index.md does not link to them"


def test_the_two_commands_are_in_the_makefile():
    commands = re.findall(r"^make (\w+)", text_of(README), re.MULTILINE)
    assert commands[:2] == ["demo", "test"]
    targets = re.findall(r"^(\w+):", text_of(REPOSITORY / "Makefile"), re.MULTILINE)
    assert set(commands) <= set(targets)


# --- nothing remains out ----------------------------------------------------------------------------------------------


def leaves(group, words=("triage",)):
    """Yield every command with its words."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from leaves(command, (*words, name))
        else:
            yield " ".join((*words, name)), command


def test_every_command_is_documented():
    assert isinstance(cli, LazyGroup)
    text = all_text()
    assert "`triage polygraphy COMMAND`" in text  # the same commands, documented once
    known = {words.replace("triage polygraphy ", "triage ") for words, _ in leaves(cli)}
    missing = [words for words in sorted(known) if not re.search(rf"\b{re.escape(words)}\b", text)]
    assert not missing, "in no page of docs/"


def test_nothing_that_exists_is_said_to_be_missing():
    known = {words.removeprefix("triage ") for words, _ in leaves(cli)}
    known |= {words.partition(" ")[0] for words in known} - {"inspect", "debug", "check"}
    said = [line for line in all_text().splitlines() if "not in this version" in line]
    assert {word for line in said for word in re.findall(r"`([^`]+)`", line)} & known == set()


@pytest.mark.parametrize("name", ["diagnose", "run", "report", "demo"])
def test_every_option_is_documented(name):
    shown = set(re.findall(r"(?<![\w-])--[\w-]*\w", all_text()))
    command = cli.get_command(click.Context(cli), name)
    words = [word for p in command.params if not getattr(p, "hidden", False) for word in p.opts if word[:2] == "--"]
    assert words
    assert not set(words) - shown, "in no page of docs/"


def test_options_shown_exist():
    """In what is written as a command of ours no option is made up; Polygraphy's own are on their own page."""
    known = defaultdict(set)
    for words, command in leaves(cli):
        known[words] = {word for p in command.params for word in (*p.opts, *p.secondary_opts)}
        known[words] |= {"--onnxrt", "--openvino", "--trt", "--help", "-h"} if words == "triage run" else {"--help"}
    for page in PAGES:
        for match in re.finditer(r"`(triage [^`]+)`", text_of(page)):
            words = next((w for w in sorted(known, key=len, reverse=True) if match[1].startswith(w)), None)
            if words is None:
                continue
            for option in re.findall(r"(?<=\s)--[\w-]+", match[1]):
                assert option in known[words], f"{page.name}: {match[1]}"


@pytest.mark.parametrize("name", known())
def test_engines_page_has_every_option_as_the_engine_tells_it(name):
    text = text_of(REPOSITORY / "docs/engines.md")
    section = re.search(rf"^### `{name}`$(.*?)(?=^##|\Z)", text, re.DOTALL | re.MULTILINE)
    assert section, f"docs/engines.md has no section ### `{name}`"
    common = text.partition("## Built in\n")[2].partition("\n### ")[0]
    own, shared = (dict(re.findall(r"^\| `([^`]+)` \| (.*) \|$", part, re.MULTILINE)) for part in (section[1], common))
    told = dict(create(EngineSpec(name)).options)
    assert own == {word: meaning for word, meaning in told.items() if shared.get(word) != meaning}
    assert {*shared} == {"worker", "layout", "names"}, "the table that many engines share"


def test_engines_page_has_the_words_of_the_interface():
    text = text_of(REPOSITORY / "docs/engines.md")
    words = [field.name for field in dataclasses.fields(Region)]
    words += [name for name in vars(Session) if not name.startswith("_")]
    words += [precision.value for precision in Precision] + [kind.value for kind in FaultKind] + [*FaultyEngine.options]
    assert [word for word in words if f"`{word}`" not in text and f"`{word}(" not in text] == []


@pytest.mark.parametrize("kind", VerdictKind, ids=lambda kind: kind.value)
def test_verdicts_page_has_every_verdict(kind):
    text = text_of(REPOSITORY / "docs/verdicts.md")
    section = re.search(rf"^### `{kind.value}`$(.*?)(?=^##|\Z)", text, re.DOTALL | re.MULTILINE)
    assert section, f"docs/verdicts.md has no section ### `{kind.value}`"
    assert re.search(rf"^\| \[`{kind.value}`\]\(#{kind.value}\) \| {kind.exit_code} \|", text, re.MULTILINE)


def test_verdicts_page_knows_which_are_reached():
    """A verdict is marked as not reached exactly when no code can reach it."""
    folder = REPOSITORY / "src/tensortriage/diagnose"
    code = "".join(path.read_text() for path in folder.rglob("*.py") if path.name != "verdict.py")
    text = text_of(REPOSITORY / "docs/verdicts.md")
    marked = set(re.findall(r"^### `([\w-]+)`\n\n\*Not reached in this version\.\*", text, re.MULTILINE))
    reached = set(re.findall(r"VerdictKind\.([A-Z_]+)", code))
    assert marked == {kind.value for kind in VerdictKind if kind.name not in reached}


@pytest.mark.parametrize("kind", FIELD_TABLES, ids=lambda kind: kind.__name__)
def test_every_field_of_the_documents_is_explained(kind):
    text = text_of(REPOSITORY / "docs/machines.md") + text_of(REPOSITORY / "docs/diagnose.md")
    assert [field.name for field in dataclasses.fields(kind) if f"`{field.name}`" not in text] == []


def test_every_format_is_documented():
    code = "".join(path.read_text(encoding="utf-8") for path in (REPOSITORY / "src").rglob("*.py"))
    formats = set(re.findall(r'"(tensortriage\.[\w-]+/\d+)"', code))
    assert len(formats) > 5
    text = all_text()
    assert sorted(name for name in formats if name not in text) == [], "in no page of docs/"


def test_exit_codes_of_the_help_are_those_of_the_page():
    text = text_of(REPOSITORY / "docs/machines.md")
    assert set(re.findall(r"\b(\d+) \w", cli.epilog.partition("Exit codes:")[2])) == set(
        re.findall(r"^\| (\d+) \|", text.partition("## Exit codes")[2].partition("##")[0], re.MULTILINE)
    )
    assert set(COMMANDS) <= {words.split()[1] for words, _ in leaves(cli)}


MAY_NAME_SLUGS = re.compile("slug|_SLUGS|AdapterError")


def slug_values(node, path):
    """Yield the expressions in a syntax node that are slugs of errors."""
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
        yield from (node.value for target in node.targets if getattr(target, "id", "") == "slug")
    if isinstance(node, ast.Assign) and any(getattr(target, "id", "") == "_SLUGS" for target in node.targets):
        yield from (row.elts[1] for row in node.value.elts)  # rows of exception, slug, cure
    if not isinstance(node, ast.Call):
        return
    yield from (keyword.value for keyword in node.keywords if keyword.arg == "slug")
    name = getattr(node.func, "id", "")
    if name == "AdapterError" and len(node.args) > 2:
        yield node.args[2]


def slugs():
    """Return slug -> places in the source."""
    found = defaultdict(set)
    for path in sorted((REPOSITORY / "src").rglob("*.py")) + sorted((REPOSITORY / "worker").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if MAY_NAME_SLUGS.search(text) else ():
            for value in slug_values(node, path):
                for constant in ast.walk(value):
                    if isinstance(constant, ast.Constant) and isinstance(constant.value, str):
                        found[constant.value].add(f"{path.relative_to(REPOSITORY)}:{node.lineno}")
    return found


def test_errors_page_has_every_slug_once_and_no_other():
    rows = re.findall(r"^\| `([a-z0-9-]+)` \| [^|]+ \|$", text_of(REPOSITORY / "docs/errors.md"), re.MULTILINE)
    known = slugs()
    assert len(known) > 100
    assert sorted(f"{slug} ({', '.join(known[slug])})" for slug in set(known) - set(rows)) == [], "not in errors.md"
    assert sorted(set(rows) - set(known)) == [], "no longer in the source"
    assert len(rows) == len(set(rows))

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tensortriage.diagnose.state.verdict import Verdict
from tensortriage.report.document import Report
from tensortriage.report.formats import markdown
from tensortriage.values.printable import printable
from tensortriage.values.text import abridged, shorten
from unit.report.samples import HOSTILE_NAMES, hostile, local_fault, range_overflow

# As GitHub reads it, but trusting: HTML is let through and addresses become links, so that a gap would show.
PARSER = MarkdownIt("commonmark", {"html": True}).enable("table")


def code_spans(text: str) -> list[str]:
    tokens = [token for block in PARSER.parse(text) for token in block.children or ()]
    return [token.content for token in tokens if token.type == "code_inline"]


@given(st.text(min_size=1))
def test_a_code_span_shows_exactly_the_name(name: str) -> None:
    expected = shorten(printable(name), 200)
    if expected.strip():
        assert code_spans(f"before {markdown.code(name)} after") == [expected]


@given(st.text(min_size=1).filter(lambda name: name.strip() != ""))
def test_a_code_span_in_a_cell_stays_in_its_cell(name: str) -> None:
    expected = shorten(printable(name), 200)
    rows = [f"| {markdown.cell_code(name)} | end |"]
    html = PARSER.render("\n".join(["| a | b |", "|---|---|", *rows]))
    assert html.count("<td>") == 2
    if expected.strip():
        assert code_spans("\n".join(["| a | b |", "|---|---|", *rows])) == [expected]


@given(st.text() | st.text("-+*#=>.)1 `_~|[]<&@:/\\\\n", max_size=12))
def test_plain_text_means_nothing_to_markdown(text: str) -> None:
    expected = abridged(printable(text), 1000).strip()
    blocks = PARSER.parse(markdown.plain(text))
    if not expected:
        return
    assert [b.type for b in blocks] == ["paragraph_open", "inline", "paragraph_close"]
    block = blocks[1]
    kinds = {token.type for token in block.children or ()}
    comments = [token.content for token in block.children or () if token.type == "html_inline"]
    assert kinds <= {"text", "text_special", "html_inline"}
    assert set(comments) <= {"<!-- -->"}
    shown = "".join(token.content for token in block.children or () if token.type != "html_inline")
    assert shown == expected


def test_nothing_hostile_gets_through() -> None:
    html = PARSER.render(markdown.render(hostile()))
    assert not re.search(r"<(script|img|a)\b", html)
    assert "@someone" not in re.sub(r"<code[^>]*>.*?</code>", "", html, flags=re.DOTALL).replace("@<!-- -->", "@ ")


def test_all_hostile_commands_stay_in_their_block() -> None:
    blocks = [token for token in PARSER.parse(markdown.render(hostile())) if token.type == "fence"]
    assert blocks[-1].content.splitlines() == [printable(name) for name in HOSTILE_NAMES]


def test_steps_are_one_list() -> None:
    tokens = PARSER.parse(markdown.render(hostile()))
    assert sum(token.type == "ordered_list_open" for token in tokens) == 1
    assert sum(token.type == "list_item_open" and token.info.isdigit() for token in tokens) == len(HOSTILE_NAMES)


def test_tables_stop_at_twelve_rows_and_count_the_rest() -> None:
    text = markdown.render(local_fault(60, culprits=tuple(range(20))))
    assert "... and 8 culprits more." in text


def test_an_issue_names_model_engines_versions_culprit_and_command() -> None:
    text = markdown.render(range_overflow())
    for part in (
        "models/minilm.onnx",
        "onnxruntime:precision=fp16",
        "openvino 2026.4.1",
        "Pow_82",
        "```sh\ntriage debug",
    ):
        assert part in text


@pytest.mark.parametrize("verdict", ["match", "engine-hang"])
def test_a_bare_verdict_is_enough(verdict: str) -> None:
    text = markdown.render(Report(Verdict(verdict, 1.0, "so it is")))
    assert text.startswith(f"## {verdict}: ")
    assert "###" not in text

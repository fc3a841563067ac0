"""The report page in a real browser: it draws, it answers to mouse and keyboard, and nothing in a file is executed."""

import base64
import csv
import math
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest

from e2e.chromium import Page, chromium, find_chromium
from tensortriage.report.document import Report
from tensortriage.report.formats import html
from tensortriage.report.html_page import asset
from tensortriage.values.printable import printable
from tensortriage.values.text import magnitude, times
from unit.report.samples import HOSTILE_NAMES, early_overflow, healthy_match, hostile, local_fault, range_overflow

PROGRAM = find_chromium()
pytestmark = [
    pytest.mark.lengthy,
    pytest.mark.browser,
    pytest.mark.skipif(PROGRAM is None, reason="no chromium or chrome is installed: the page cannot be opened"),
]
SAMPLES = {
    "match": healthy_match(),
    "early-overflow": early_overflow(),
    "overflow": range_overflow(),
    "fault": local_fault(),
    "many-culprits": local_fault(300, culprits=tuple(range(300))),
    "many-tensors": local_fault(2000, culprits=(700, 1500)),
    "hostile": hostile(),
}
USE_EVERYTHING = """
(async () => {
  const wait = () => new Promise((done) => setTimeout(done, 0));
  for (const details of document.querySelectorAll("details")) details.open = true;
  document.querySelector("button.more:not([hidden])")?.click();
  for (const line of [...document.querySelectorAll("#ops tbody tr")].slice(0, 45)) line.click();
  await wait();
  for (const button of document.querySelectorAll("th button")) button.click();
  for (const select of document.querySelectorAll("select")) {
    for (const option of select.options) {
      select.value = option.value;
      select.dispatchEvent(new Event("change"));
    }
    await wait();
    select.selectedIndex = 0;
    select.dispatchEvent(new Event("change"));
  }
  const svg = document.querySelector("#depth svg");
  if (svg) {
    const box = svg.getBoundingClientRect();
    for (let x = 0; x < box.width; x += 23) {
      svg.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + x, clientY: box.top + 90 }));
    }
  }
  for (const button of document.querySelectorAll("button.copy")) button.click();
  await wait();
})()
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    assert PROGRAM is not None
    with chromium(PROGRAM, tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def show(page: Page, report: Report, folder: Path, *, policy: str = "kept") -> None:
    text = html.render(report)
    if policy == "removed":
        text, removed = re.subn(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
        assert removed == 1
    path = folder / "report.html"
    path.write_text(text, encoding="utf-8")
    page.open(path)


def lines(page: Page, column: int) -> list[str]:
    return list(page.run(f"[...document.querySelectorAll('#ops tbody tr')].map((r) => r.cells[{column}].textContent)"))


def requests(page: Page) -> list[str]:
    return [event["request"]["url"] for event in page.seen("Network.requestWillBeSent")]


@pytest.mark.parametrize("name", SAMPLES)
def test_the_page_draws_without_errors_and_without_network(page: Page, name: str, tmp_path: Path) -> None:
    show(page, SAMPLES[name], tmp_path)
    if len(SAMPLES[name].layers.rows) < 250:
        page.run(USE_EVERYTHING)
    assert page.errors() == []
    assert int(page.run("document.documentElement.dataset.readyMs")) >= 0
    assert requests(page) == [(tmp_path / "report.html").as_uri()]


@pytest.mark.parametrize("policy", ["kept", "removed"])
def test_nothing_in_a_hostile_report_is_executed(page: Page, policy: str, tmp_path: Path) -> None:
    show(page, hostile(), tmp_path, policy=policy)
    page.run(USE_EVERYTHING)
    assert page.seen("Page.javascriptDialogOpening") == []
    assert page.errors() == []
    assert requests(page) == [(tmp_path / "report.html").as_uri()]
    assert page.run("document.scripts.length") == 2
    assert page.run("document.querySelectorAll('img, iframe, object, embed, link, form, base').length") == 0
    handlers = (
        "[...document.querySelectorAll('*')].flatMap((e) => e.getAttributeNames()).filter((n) => n.startsWith('on'))"
    )
    assert page.run(handlers) == []


def test_the_probes_see_an_attack_that_gets_through(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "broken.html"
    path.write_text("<meta charset=utf-8>" + "".join(HOSTILE_NAMES[:2]), encoding="utf-8")
    page.open(path)
    assert page.seen("Page.javascriptDialogOpening")
    assert len(requests(page)) > 1


def test_the_policy_stops_scripts_that_the_page_did_not_bring(page: Page, tmp_path: Path) -> None:
    text = html.render(healthy_match()).replace("<body>", "<body>" + "".join(HOSTILE_NAMES[:2]))
    (tmp_path / "report.html").write_text(text, encoding="utf-8")
    page.open(tmp_path / "report.html")
    assert page.seen("Page.javascriptDialogOpening") == []
    assert any("Content Security Policy" in error for error in page.errors())


def test_hostile_names_are_shown_as_they_are(page: Page, tmp_path: Path) -> None:
    show(page, hostile(), tmp_path)
    assert page.run("document.querySelector('.command code').textContent") == HOSTILE_NAMES[0]
    page.run("[...document.querySelectorAll('#ops tbody tr')].find((r) => r.cells[0].textContent === '6').click()")
    shown = page.run("[...document.querySelectorAll('#detail .names code')].map((c) => c.textContent)")
    assert shown[1] == r"\u{1b}[2J\u{1b}[31mred\u{7}"
    page.run("[...document.querySelectorAll('#ops tbody tr')].find((r) => r.cells[0].textContent === '1').click()")
    shown = page.run("[...document.querySelectorAll('#detail .names code')].map((c) => c.textContent)")
    assert shown[1] == HOSTILE_NAMES[1]


def test_ops_are_sorted_by_influence_and_by_any_column(page: Page, tmp_path: Path) -> None:
    report = local_fault(60, culprits=(40, 12))
    show(page, report, tmp_path)
    by = [(-(row.influence or 0.0), -(row.local_error or 0.0), -(row.in_context_error or 0.0), row.order)
          for row in report.layers.rows]  # fmt: skip
    ranked = [str(order) for *_, order in sorted(by)]
    assert lines(page, 0) == ranked
    page.run("document.querySelectorAll('#ops th button')[0].click()")
    assert lines(page, 0) == [str(order) for order in range(60)]
    page.run("document.querySelectorAll('#ops th button')[0].click()")
    assert lines(page, 0) == [str(order) for order in reversed(range(60))]
    assert page.run("document.querySelector('#ops th').getAttribute('aria-sort')") == "descending"
    page.run("document.querySelectorAll('#ops th button')[1].click()")
    assert lines(page, 1) == sorted(lines(page, 1), key=lambda text: text.removesuffix("culprit"))


def test_filters_narrow_the_table(page: Page, tmp_path: Path) -> None:
    report = local_fault(300)
    show(page, report, tmp_path)
    assert len(lines(page, 0)) == 100
    page.run("document.querySelector('button.more').click()")
    assert len(lines(page, 0)) == 300
    set_value = "((e, v, kind) => {{ e.value = v; e.dispatchEvent(new Event(kind)); }})({})"
    tools = "document.querySelectorAll('#ops-tools select')"
    page.run(set_value.format(f"{tools}[1], 'Pow', 'change'"))
    wanted = [row for row in report.layers.rows if row.op_type == "Pow"]
    assert len(lines(page, 0)) == len(wanted)
    assert page.run("document.getElementById('ops-count').textContent") == f"{len(wanted)} of 300"
    page.run(set_value.format("document.querySelector('#ops-tools input'), 'LAYER.9/', 'input'"))
    assert set(lines(page, 0)) == {str(row.order) for row in wanted if "layer.9/" in row.node}
    page.run(set_value.format("document.querySelector('#ops-tools input'), 'no such op', 'input'"))
    assert lines(page, 0) == []
    page.run(set_value.format("document.querySelector('#ops-tools input'), '', 'input'"))
    page.run(set_value.format(f"{tools}[1], '', 'change'"))
    page.run(set_value.format(f"{tools}[0], 'culprits', 'change'"))
    assert lines(page, 0) == ["121", "250"]


def saved_csv(page: Page, folder: Path) -> list[dict[str, str]]:
    """Press the CSV button and read the file that the browser saves."""
    page.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
    page.run("document.querySelector('#ops-tools button').click()")
    page.wait_for(lambda: (folder / "ops.csv").exists())
    with (folder / "ops.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_csv_holds_every_column_of_the_rows_that_pass(page: Page, tmp_path: Path) -> None:
    report = range_overflow()
    show(page, report, tmp_path)
    rows = {int(row["order"]): row for row in saved_csv(page, tmp_path)}
    assert len(rows) == len(report.layers.rows)
    for source in report.layers.rows[80:84]:
        row = rows[source.order]
        assert (row["node"], row["value"], row["shape"]) == (source.node, source.value, "1x128x384")
        assert row["local_error"] == ("" if source.local_error is None else row["local_error"])
        assert int(row["nonfinite_target"]) == source.nonfinite_target
    assert rows[82]["local_error"] == "Infinity"
    assert float(rows[81]["local_error"]) == report.layers.rows[81].local_error


def test_csv_defuses_formulas(page: Page, tmp_path: Path) -> None:
    show(page, hostile(), tmp_path)
    cells = [cell for row in saved_csv(page, tmp_path) for cell in (row["value"], row["note"], row["op_type"])]
    assert f"'{HOSTILE_NAMES[13]}" in cells
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))]
    assert HOSTILE_NAMES[3] in cells, "line breaks survive inside quotes"


def chart_point(page: Page, order: int, number: int) -> tuple[float, float]:
    """Return where in the window the chart draws an op."""
    box = page.run("""(() => {
      const svg = document.querySelector("#depth svg");
      svg.scrollIntoView({ block: "center", behavior: "instant" });
      const axis = svg.querySelector(".axis");
      const { left, top } = svg.getBoundingClientRect();
      return [left + Number(axis.getAttribute("x1")), left + Number(axis.getAttribute("x2")), top];
    })()""")
    return box[0] + (box[1] - box[0]) * order / (number - 1), box[2] + 120


def test_a_click_in_the_chart_selects_the_op(page: Page, tmp_path: Path) -> None:
    report = local_fault(60, culprits=(40,))
    show(page, report, tmp_path)
    page.click(*chart_point(page, 23, 60))
    assert page.run("document.querySelector('#ops tr[aria-current]').cells[0].textContent") == "23"
    assert report.layers.rows[23].node in page.run("document.getElementById('detail').textContent")
    tip = page.run("document.querySelector('.tip').innerText")
    assert report.layers.rows[23].op_type in tip
    assert "noise floor" in tip


def test_the_first_culprit_is_selected_and_marked(page: Page, tmp_path: Path) -> None:
    show(page, local_fault(300), tmp_path)
    assert "culprit 1" in page.run("document.getElementById('detail').textContent")
    assert page.run("document.querySelector('#ops tr[aria-current]').cells[0].textContent") == "121"
    assert page.run("[...document.querySelectorAll('.culprit-label')].map((t) => t.textContent)") == [
        f"culprit: {local_fault(300).layers.rows[order].op_type}" for order in (121, 250)
    ]
    assert page.run("document.querySelectorAll('.culprit-ring').length") == 2


def test_nan_is_marked_at_the_top(page: Page, tmp_path: Path) -> None:
    show(page, range_overflow(), tmp_path)
    marks = page.run("document.querySelector('.nonfinite').getAttribute('d')")
    assert marks.count("M") == 217 - 82
    top = page.run("document.querySelector('.nonfinite').getBBox().y")
    assert top < page.run("document.querySelector('.dots-context').getBBox().y")


def test_the_chart_works_from_the_keyboard(page: Page, tmp_path: Path) -> None:
    show(page, local_fault(60, culprits=(40,)), tmp_path)
    page.run("document.querySelector('#depth svg').focus()")
    for key in ("ArrowLeft", "ArrowLeft", "Enter"):
        page.press(key)
    assert page.run("document.querySelector('#ops tr[aria-current]').cells[0].textContent") == "38"
    page.press("+")
    assert page.run("!!document.querySelector('#depth-tools button:not([hidden]):last-child')")
    page.press("Escape")
    assert page.run("document.querySelector('#depth-tools button:last-child').hidden")


def test_the_table_works_from_the_keyboard(page: Page, tmp_path: Path) -> None:
    show(page, local_fault(60, culprits=(40,)), tmp_path)
    assert page.run("document.querySelectorAll('#ops tbody tr[tabindex=\"0\"]').length") == 1
    page.run("document.querySelector('#ops tbody tr[tabindex=\"0\"]').focus()")
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        page.press(key)
    assert page.run("document.querySelector('#ops tr[aria-current]').rowIndex") == 3


def test_arrow_keys_select_as_they_go(page: Page, tmp_path: Path) -> None:
    show(page, local_fault(60, culprits=(40,)), tmp_path)
    page.run("document.querySelector('#ops tbody tr[tabindex=\"0\"]').focus()")
    page.press("ArrowDown")
    first = page.run("document.querySelector('#detail .count').textContent")
    assert page.run("document.querySelector('#ops tr[aria-current]').cells[0].textContent") == first.removeprefix("#")
    page.press("End")
    assert page.run("document.querySelector('#ops tr[aria-current]').rowIndex") == 60
    page.press("Home")
    assert page.run("document.querySelector('#ops tr[aria-current]').rowIndex") == 1


@pytest.mark.parametrize("place", [3, 77])
def test_a_link_leads_to_its_op(page: Page, tmp_path: Path, place: int) -> None:
    """In the address, where the page is opened, and in the page, where it is clicked; also beyond the rows shown."""
    report = local_fault(300, culprits=(40,))
    row = report.layers.rows[place]
    selected = "document.querySelector('#ops tr[aria-current]').cells[0].textContent"

    def opened(name: str, fragment: str = "") -> str:
        path = tmp_path / name
        path.write_text(html.render(report), encoding="utf-8")
        page.open(path, fragment)
        return str(page.run(selected))

    assert opened("by-node.html", "#op=" + quote(row.node, safe="")) == str(row.order)
    assert opened("by-tensor.html", "#op=" + quote(row.value, safe="")) == str(row.order)
    href = page.run("document.querySelector('#detail a.count').getAttribute('href')")
    assert unquote(href) == f"#op={row.node}"
    assert opened("without.html") == "40"
    page.run(f"location.hash = {href!r}; new Promise((done) => setTimeout(done, 0))")
    assert page.run(selected) == str(row.order)
    assert opened("cut-off.html", "#op=%E0%A4%A") == "40"
    assert page.errors() == []


@pytest.mark.parametrize(
    "value", [None, 0.0, 1.0312, 999.6, 9550.0, 65519.4, 122705.0, 4231104.0, 5e11, 3.4e38, 1.2e-5, math.inf]
)
def test_the_page_writes_numbers_as_every_other_format_does(page: Page, tmp_path: Path, value: float | None) -> None:
    text = asset("page.js")
    source = text[text.index("function magnitude(") : text.index("function decibel(")]
    given = "null" if value is None else "Infinity" if math.isinf(value) else repr(value)
    show(page, healthy_match(), tmp_path)
    assert page.run(f"(() => {{ {source}; return magnitude({given}); }})()") == magnitude(value)
    assert page.run(f"(() => {{ {source}; return times({given}); }})()") == times(value).replace("x", "×")


def test_series_can_be_hidden_and_the_unit_changed(page: Page, tmp_path: Path) -> None:
    show(page, local_fault(60, culprits=(40,)), tmp_path)
    page.run("document.querySelector('#depth-tools button').click()")
    assert page.run("document.querySelectorAll('.dots-context').length") == 0
    page.run("(() => { const s = document.querySelector('#depth-tools select'); s.value = 'db';"
             " s.dispatchEvent(new Event('change')); })()")  # fmt: skip
    ticks = page.run(
        "[...document.querySelectorAll('.tick')].map((t) => t.textContent).filter((t) => t.endsWith('dB'))"
    )
    # SQNR in dB is -20 log10 of the relative RMS error: one decade of error is 20 dB.
    assert {"20 dB", "40 dB", "60 dB"} <= set(ticks)


def test_the_next_command_is_copied(page: Page, tmp_path: Path) -> None:
    report = range_overflow()
    show(page, report, tmp_path)
    copied = page.run("""(async () => {
      let text = null;
      const clipboard = { writeText: async (given) => { text = given; } };
      Object.defineProperty(navigator, "clipboard", { configurable: true, value: clipboard });
      document.querySelector(".next .copy").click();
      await new Promise((done) => setTimeout(done, 20));
      return [text, document.querySelector(".next .copy").textContent];
    })()""")
    assert copied == [report.verdict.next[0], "Copied"]


def test_light_and_dark(page: Page, tmp_path: Path) -> None:
    show(page, healthy_match(), tmp_path)
    grounds = []
    for scheme in ("light", "dark"):
        page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        colour = page.run("getComputedStyle(document.querySelector('.card')).backgroundColor")
        grounds.append(sum(map(int, re.findall(r"\d+", colour))))
    page.call("Emulation.setEmulatedMedia", features=[])
    assert grounds[0] > 600 > 200 > grounds[1]


@pytest.mark.parametrize("name", ["overflow", "hostile"])
def test_everything_that_can_be_used_has_a_name(page: Page, name: str, tmp_path: Path) -> None:
    show(page, SAMPLES[name], tmp_path)
    nodes: list[dict[str, Any]] = page.call("Accessibility.getFullAXTree")["nodes"]
    kinds = {"button", "combobox", "searchbox", "application", "region", "meter", "link", "image", "heading"}
    used = [node for node in nodes if node.get("role", {}).get("value") in kinds]
    assert len(used) > 20
    assert [node for node in used if not node.get("name", {}).get("value", "").strip()] == []


@pytest.mark.parametrize("width", [360, 1400])
@pytest.mark.parametrize("name", ["overflow", "hostile"])
def test_the_page_never_scrolls_sideways(page: Page, name: str, width: int, tmp_path: Path) -> None:
    page.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
    try:
        show(page, SAMPLES[name], tmp_path)
        assert page.run("document.documentElement.scrollWidth") <= width
    finally:
        page.call("Emulation.clearDeviceMetricsOverride")


PAPER = {"A4": (8.27, 11.69), "Letter": (8.5, 11.0)}
"""Inches."""
WORD = re.compile(r'<word xMin="([\d.-]+)" yMin="([\d.-]+)" xMax="([\d.-]+)" yMax="([\d.-]+)">(.*?)</word>')


def words_over_others(page: str) -> Iterator[tuple[str, str]]:
    """Yield words of a page of ``pdftotext -bbox`` that lie over each other by a third of their height and width."""
    words = [([float(each) for each in found[:4]], found[4]) for found in WORD.findall(page)]
    for place, (one, text) in enumerate(words):
        for other, beside in words[place + 1 :]:
            wide = min(one[2], other[2]) - max(one[0], other[0])
            high = min(one[3], other[3]) - max(one[1], other[1])
            least = [min(one[axis + 2] - one[axis], other[axis + 2] - other[axis]) / 3 for axis in (0, 1)]
            if wide > least[0] and high > least[1]:
                yield text, beside


@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="pdftotext is not installed: nobody reads the pages")
@pytest.mark.parametrize("paper", PAPER)
@pytest.mark.parametrize("name", ["fault", "overflow"])
def test_on_paper_nothing_lies_over_anything_and_nothing_is_cut(
    page: Page, name: str, paper: str, tmp_path: Path
) -> None:
    show(page, SAMPLES[name], tmp_path)  # drawn for a wide window, as it is when somebody prints it
    width, height = PAPER[paper]
    printed = page.call("Page.printToPDF", paperWidth=width, paperHeight=height)["data"]
    (tmp_path / "page.pdf").write_bytes(base64.b64decode(printed))
    words = ["pdftotext", "-bbox", str(tmp_path / "page.pdf"), "-"]
    text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    pages = text.split("<page ")[1:]
    assert [over for each in pages for over in words_over_others(each)] == []
    inside = [[float(number) for number in found[:4]] for found in WORD.findall(text)]
    assert min(box[0] for box in inside) > 0
    assert max(box[2] for box in inside) < 72 * width
    for axis in ("topological", "RMS"):  # the titles of the chart's axes: at its right end, and at its left
        assert f">{axis}<" in text


def test_without_scripts_the_verdict_outputs_and_steps_are_there(page: Page, tmp_path: Path) -> None:
    report = range_overflow()
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        show(page, report, tmp_path)
    finally:
        page.call("Emulation.setScriptExecutionDisabled", value=False)
    text = page.run("document.body.innerText")
    for part in (report.verdict.summary, report.verdict.next[0], "last_hidden_state", report.verdict.steps[2].answer):
        assert printable(part) in text
    assert "need JavaScript" in text

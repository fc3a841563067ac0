import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from importlib.resources import files

import pytest

from tensortriage.report.document import Report
from tensortriage.report.formats import html
from tensortriage.values.serial import from_json, to_json
from unit.report.samples import HOSTILE_NAMES, early_overflow, healthy_match, hostile, local_fault, range_overflow

REPORTS = [healthy_match(), early_overflow(), range_overflow(), local_fault(), hostile()]
ASSETS = files("tensortriage.report") / "assets"


class Elements(HTMLParser):
    """Collects every element with its attributes, and the text of script and style elements."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.cdata_elem:
            self.texts.append(data)


def block(page: str, pattern: str) -> str:
    found = re.search(pattern, page, re.DOTALL)
    assert found
    return found[1]


@pytest.mark.parametrize("report", REPORTS)
def test_the_page_holds_only_the_elements_of_the_template(report: Report) -> None:
    elements = Elements(html.render(report)).found
    tags = [tag for tag, _ in elements]
    assert tags.count("script") == 2
    assert not {"img", "iframe", "object", "embed", "link", "base", "form"} & set(tags)
    assert not [name for _, attributes in elements for name in attributes if name.startswith("on")]
    assert not [a for _, a in elements if "style" in a], "inline styles are blocked by the policy"


@pytest.mark.parametrize("report", REPORTS)
def test_nothing_is_loaded_from_anywhere(report: Report) -> None:
    elements = Elements(html.render(report)).found
    addresses = [a[name] for _, a in elements for name in ("src", "href", "action", "srcset", "data") if name in a]
    assert addresses == ["#verdict"]
    style = block(html.render(report), "<style>(.*?)</style>")
    assert "url(" not in style
    assert "@import" not in style


@pytest.mark.parametrize("report", REPORTS)
def test_the_embedded_data_are_the_report(report: Report) -> None:
    data = block(html.render(report), '<script type="application/json" id="data">(.*?)</script>')
    assert not set("<>&") & set(data)
    assert data.isascii()
    assert to_json(from_json(data, Report)) == to_json(report)


def test_the_policy_allows_this_script_and_style_and_nothing_else() -> None:
    page = html.render(healthy_match())
    policy = block(page, 'Content-Security-Policy" content="(.*?)"').replace("&#39;", "'")
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    script = block(page, r"</script>\s*<script>(.*?)</script>")
    style = block(page, "<style>(.*?)</style>")
    for name, source in (("script-src", script), ("style-src", style)):
        digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
        assert rules[name] == f"'sha256-{digest}'"
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"


@pytest.mark.parametrize("asset", ["page.js", "chart.js", "table.js", "main.js", "report.css"])
def test_assets_neither_parse_html_nor_reach_out_nor_end_their_element(asset: str) -> None:
    source = (ASSETS / asset).read_text(encoding="utf-8")
    parses = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|Function\("
    reaches = r"fetch\(|XMLHttp|WebSocket|sendBeacon|import\b|https?:"
    ends = r"</|<!--"
    assert not re.search(f"{parses}|{reaches}|{ends}", source.replace("http://www.w3.org/2000/svg", ""))


@pytest.mark.parametrize("asset", sorted(each.name for each in ASSETS.iterdir() if each.name.endswith(".j2")))
def test_no_template_switches_escaping_off(asset: str) -> None:
    source = (ASSETS / asset).read_text(encoding="utf-8")
    assert not re.search(r"\|\s*safe\b|{%-?\s*autoescape", source)


def test_control_characters_are_shown_as_escapes() -> None:
    page = html.render(hostile())
    outside = re.sub("<script.*?</script>", "", page, flags=re.DOTALL)
    assert not set("\x00\x07\x1b\u202e\u202c") & set(outside)
    assert "\\x1b[2J" in outside


def test_names_are_on_the_page_word_for_word() -> None:
    parser = Elements(html.render(hostile()))
    titles = {attributes["title"] for _, attributes in parser.found if "title" in attributes}
    assert HOSTILE_NAMES[0] in titles
    assert f"{HOSTILE_NAMES[4]}4" in titles, "a long name is whole in its tooltip"


def test_two_thousand_tensors_stay_below_three_megabytes() -> None:
    page = html.render(local_fault(2000, culprits=(700, 1500)))
    assert len(page.encode()) < 3_000_000
    assert len(json.loads(block(page, 'id="data">(.*?)</script>'))["layers"]["rows"]) == 2000


def luminance(colour: str) -> float:
    """Relative luminance of #rrggbb (WCAG 2.2)."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    high, low = sorted((luminance(first), luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_text_and_marks_have_enough_contrast(scheme: int) -> None:
    # WCAG 2.2: 4.5 for text (1.4.3), 3 for parts of graphics (1.4.11).
    roots = re.findall(r":root \{(.*?)\}", (ASSETS / "report.css").read_text(encoding="utf-8"), re.DOTALL)
    colours = dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6});", roots[scheme]))
    for name in ("text", "quiet", "link", "good", "notice", "problem", "unsure"):
        for ground in ("card", "page"):
            assert contrast(colours[name], colours[ground]) >= 4.5, (name, ground)
    assert contrast(colours["quiet"], colours["sunken"]) >= 4.5
    for name in ("context", "local", "selected"):
        assert contrast(colours[name], colours["card"]) >= 3, name

"""The report as one HTML file that works offline, is safe to open, and can be attached to an issue.

A hostile name stays harmless because the template escapes every expression (Jinja's autoescape), and the data travel
as JSON in a block that browsers do not execute, with ``<`` escaped so that nothing in it can end the block; the script
puts them on the page as text only. Should one of these ever fail, a content security policy still allows no more than
the one script and the one style sheet of this package, by hash, and no network at all.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from markupsafe import Markup

from tensortriage.report.case_tables import MOST_ROWS, culprits, outputs, ranges, shapes
from tensortriage.report.document import Report, step_cost
from tensortriage.report.html_page import asset, compiled, page, script_of
from tensortriage.report.verdict_words import BREAKERS
from tensortriage.values import text as words
from tensortriage.values.serial import to_plain

_SCRIPTS = ("copy.js", "page.js", "chart.js", "table.js", "main.js")
_LONGEST_EVIDENCE = 2000


def render(report: Report) -> str:
    """Return a self-contained page; it needs a browser of 2022 or later, and no network."""
    return page(
        asset("report.html.j2"),
        script=script_of(*_SCRIPTS),
        filters=_filters(),
        report=report,
        data=Markup(data_block(report)),  # which has escaped it
        culprits=culprits(report),
        outputs=outputs(report),
        ranges=ranges(report),
        shapes=shapes(report),
        max_rows=MOST_ROWS,
        breakers=BREAKERS,
    )


def prepare() -> None:
    """Compile the templates of `render` ahead of time."""
    compiled(asset("report.html.j2"), tuple(_filters().items()))


def _filters() -> Mapping[str, Callable[..., Any]]:
    return {"evidence": _evidence, "cost": step_cost}


def data_block(report: Report) -> str:
    r"""Return the report as JSON that is safe inside a ``<script type="application/json">`` element.

    All ``<``, ``>`` and ``&`` become ``\u003c`` etc., which JSON readers turn back: no ``</script>`` and no ``<!--`` is
    left (HTML standard, section "Restrictions for contents of script elements"). So is everything outside ASCII.
    """
    text = json.dumps(to_plain(report), ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _evidence(evidence: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Return each entry of a step's evidence as text; strings as they are, the rest as JSON."""
    for key, value in evidence.items():
        shown = value if isinstance(value, str) else json.dumps(to_plain(value), ensure_ascii=False)
        yield key, words.shorten(shown, _LONGEST_EVIDENCE)

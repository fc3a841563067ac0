"""The report as one HTML file that works offline, is safe to open, and can be attached to an issue.

A hostile name stays harmless because the template escapes every expression (Jinja's autoescape), and the data travel
as JSON in a block that browsers do not execute, with ``<`` escaped so that nothing in it can end the block; the script
puts them on the page as text only. Should one of these ever fail, a content security policy still allows no more than
the one script and the one style sheet of this package, by hash, and no network at all.
"""

import base64
import functools
import hashlib
import importlib.resources
import json
from collections.abc import Iterator, Mapping
from typing import Any

import jinja2
from markupsafe import Markup

from tensortriage.report.document import Report
from tensortriage.report.verdict_words import BREAKERS
from tensortriage.values import text as words
from tensortriage.values.printable import printable
from tensortriage.values.serial import to_plain

MAX_ROWS = 12
"""Rows of the static tables of culprits and feeds; the table of ops holds all."""

_SCRIPTS = ("page.js", "chart.js", "table.js", "main.js")
_LONGEST_EVIDENCE = 2000


def render(report: Report) -> str:
    """Return a self-contained page; it needs a browser of 2022 or later, and no network."""
    script = "".join(('"use strict";\n(() => {\n', *map(_asset, _SCRIPTS), "\n})();\n"))
    style = _asset("report.css")
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; base-uri 'none'; form-action 'none'"
    )
    return _template().render(
        report=report,
        policy=policy,
        # These three are not from the report, or were escaped by `data_block`.
        style=Markup(style),
        script=Markup(script),
        data=Markup(data_block(report)),
        max_rows=MAX_ROWS,
        breakers=BREAKERS,
    )


def data_block(report: Report) -> str:
    r"""Return the report as JSON that is safe inside a ``<script type="application/json">`` element.

    All ``<``, ``>`` and ``&`` become ``\u003c`` etc., which JSON readers turn back: no ``</script>`` and no ``<!--`` is
    left (HTML standard, section "Restrictions for contents of script elements"). So is everything outside ASCII.
    """
    text = json.dumps(to_plain(report), ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@functools.cache
def _asset(name: str) -> str:
    return (importlib.resources.files("tensortriage.report") / "assets" / name).read_text(encoding="utf-8")


def _hash(source: str) -> str:
    """Return the source expression of an inline element (Content Security Policy Level 3, section 2.3.1)."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"


@functools.cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_visible,
        loader=jinja2.FunctionLoader(_asset),
    )
    environment.filters |= {
        "count": words.count,
        "decibel": words.decibel,
        "duration": words.duration,
        "evidence": _evidence,
        "file_name": _file_name,
        "magnitude": words.magnitude,
        "percent": words.percent,
        "shape": words.shape,
        "shorten": words.shorten,
        "times": _times,
    }
    return environment.get_template("report.html.j2")


def _visible(value: object) -> object:
    """Make control characters visible in everything the template shows, except in markup of its own."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _times(ratio: float | None) -> str:
    return words.times(ratio).replace("x", "×")


def _file_name(path: str) -> str:
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2] or path


def _evidence(evidence: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Return each entry of a step's evidence as text; strings as they are, the rest as JSON."""
    for key, value in evidence.items():
        shown = value if isinstance(value, str) else json.dumps(to_plain(value), ensure_ascii=False)
        yield key, words.shorten(shown, _LONGEST_EVIDENCE)

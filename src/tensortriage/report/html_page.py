"""The common parts of pages: one style, escaped templates, and a policy that allows only their own contents."""

import base64
import functools
import hashlib
import importlib.resources
import re
from collections.abc import Callable, Mapping
from typing import Any

import jinja2
from markupsafe import Markup

from tensortriage.values import text as words
from tensortriage.values.printable import printable


@functools.cache
def asset(name: str) -> str:
    """Return a file of this package."""
    return (importlib.resources.files("tensortriage.report") / "assets" / name).read_text(encoding="utf-8")


def script_of(*names: str) -> str:
    """Return files of this package as one script; ``copy.js`` is for pages whose commands can be copied."""
    return "".join(('"use strict";\n(() => {\n', *map(asset, names), "\n})();\n"))


def page(
    template: str, *, style: str = "", script: str = "", filters: Mapping[str, Callable[..., Any]] = {}, **shown: Any
) -> str:
    """Return a self-contained page; every expression of its template is escaped, control characters are made visible.

    Args:
        template: Jinja's; it may extend ``page.html.j2`` and import ``macros.html.j2``.
        style: Style sheet, added to that of every page.
        script: The script; without one the page may run none.
        filters: Functions for its expressions, besides those of every page.
        **shown: Data for the template.
    """
    style = asset("report.css") + style
    return compiled(template, tuple(filters.items())).render(
        **shown,
        policy=_policy(style, script),
        style=Markup(style),  # safe: neither comes from the data on the page
        script=Markup(script),
    )


@functools.cache
def compiled(template: str, filters: tuple[tuple[str, Callable[..., Any]], ...]) -> jinja2.Template:
    """Return a template of `page`, compiled once with those that it extends and imports."""
    environment = _environment(dict(filters))
    found = environment.from_string(template)
    for name in _PARTS:
        environment.get_template(name)
    return found


_PARTS = ("page.html.j2", "macros.html.j2")


def _policy(style: str, script: str) -> str:
    """Return a content security policy that allows one style sheet and at most one script, by hash, and no network."""
    scripts = f"script-src {_hash(script)}; " if script else ""
    return f"default-src 'none'; {scripts}style-src {_hash(style)}; base-uri 'none'; form-action 'none'"


def _environment(filters: Mapping[str, Callable[..., Any]]) -> jinja2.Environment:
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_visible,
        loader=jinja2.FunctionLoader(asset),
    )
    environment.filters |= {
        "count": words.count,
        "crossed": _crossed,
        "duration": words.duration,
        "file_name": _file_name,
        "magnitude": words.magnitude,
        "percent": words.percent,
        "sentence_case": _sentence_case,
        "shorten": words.shorten,
        "times": _times,
        **filters,
    }
    return environment


def _hash(source: str) -> str:
    """Return the source expression of an inline element (Content Security Policy Level 3, section 2.3.1)."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"


def _visible(value: object) -> object:
    """Make control characters visible in everything a template shows, except in markup of its own."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _times(ratio: float | None) -> str:
    return _crossed(words.times(ratio))


def _crossed(text: str) -> str:
    """Return ``71x`` and ``x floor`` with the sign that a page has for it."""
    return re.sub(r"(?<=[\d ])x$|^x(?= )", "×", text)


def _sentence_case(text: str) -> str:
    return text[:1].upper() + text[1:]


def _file_name(path: str) -> str:
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2] or path

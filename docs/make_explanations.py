"""Write the table of explanations in docs/how-it-works.md: every row is made of the judge's registry, in its order.

How a cost is found is prose, and stands on the page; a row links to it by the name of the function that finds it.
"""

from collections.abc import Collection
from pathlib import Path

from tensortriage.engines.spec import Hardware
from tensortriage.envelope.explanations import Explanation, Needs, Usual
from tensortriage.envelope.registry import REGISTRY
from tensortriage.values.dtype import Precision

PAGE = Path(__file__).resolve().parents[1] / "docs/how-it-works.md"
BEGIN, END = "<!-- explanations: made by docs/make_explanations.py -->", "<!-- end of explanations -->"
HEAD = "| row | what a healthy engine does | cost | done by | in | needs |\n|---|---|---|---|---|---|\n"
WORDS = {Usual.EXPECTED: "", Usual.SELDOM: " (seldom)", Usual.WHERE_IT_FAILS: " (at ops that fail)"}


def page() -> str:
    """Return the page with its table made again."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return f"{before}{BEGIN}\n{HEAD}{''.join(map(row, REGISTRY))}{END}{rest.partition(END)[2]}"


def row(each: Explanation) -> str:
    """Return the row of an explanation."""
    cells = (f"`{each.name}`", each.words, kind(each), doers(each), formats(each), needs(each.needs))
    return f"| {' | '.join(cells)} |\n"


def kind(each: Explanation) -> str:
    """Return how the cost of a row is found, in the words of the page: ``of_moved_inputs`` is *moved inputs*."""
    return each.cost.__name__.removeprefix("of_").replace("_", " ")


def doers(each: Explanation) -> str:
    """Return whose habit it may be."""
    if each.engines:
        return ", ".join(f"`{engine}`" for engine in sorted(each.engines))
    known = [hardware for hardware in Hardware if hardware is not Hardware.ANY]
    mine = [hardware.value for hardware in known if hardware in each.hardware]
    return "all" if len(mine) == len(known) else ", ".join(mine)


def formats(each: Explanation) -> str:
    """Return the target's formats in which it is done, and how usual that is."""
    parts = []
    for usual in Usual:
        mine = [precision for precision in Precision if each.formats.get(precision) is usual]
        if mine:
            parts.append(among(mine, Precision) + WORDS[usual])
    return "; ".join(parts)


def among(mine: Collection[Precision], everything: Collection[Precision]) -> str:
    """Return formats, as all but the others where these are fewer."""
    others = [precision.value for precision in everything if precision not in mine]
    if not others:
        return "all"
    return f"all but {', '.join(others)}" if len(others) < len(mine) else ", ".join(each.value for each in mine)


def needs(need: Needs) -> str:
    """Return what has to hold beside the outputs."""
    parts = []
    if need.inside:
        parts.append("values inside")
    if need.finite:
        parts.append("no NaN or Inf inside")
    if need.alone is not None:
        parts.append("ops alone" if need.alone == 1.0 else f"ops alone, {need.alone:g}x")
    return ", ".join(parts) + (", where they run" if need.unproven else "")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

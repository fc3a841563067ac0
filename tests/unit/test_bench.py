"""The page of the benchmarks tells of every file."""

import re
from pathlib import Path

BENCH = Path(__file__).parents[2] / "bench"


def test_every_benchmark_is_on_the_page_and_every_link_leads_somewhere():
    page = (BENCH / "README.md").read_text()
    files = {file.relative_to(BENCH).as_posix() for file in BENCH.rglob("*.py") if "models" not in file.parts}
    assert {name for name in files if f"`{name}`" not in page} == set()
    assert all((BENCH / place).exists() for place in re.findall(r"\]\(([^)]+)\)", page))

"""What is optional lives at the edge: it imports what a plug-in from outside may, and the rest is private to it."""

import ast
import importlib.metadata
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import tensortriage_engines
from tensortriage import overview
from tensortriage.cli import groups
from tensortriage.engines import registry

ROOT = Path(__file__).parents[2]
HOME = Path(tensortriage_engines.__file__).parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
POINTS = PROJECT["project"]["entry-points"]
BESIDE = sorted(path for path in (ROOT / "src").glob("tensortriage_*") if path.is_dir())
"""The packages beside the core."""
PUBLIC = {
    "tensortriage_builds": {
        "tensortriage.sdk", "tensortriage.engines.sdk", "tensortriage.diagnose.sdk", "tensortriage.envelope.sdk",
        "tensortriage.api",
    },
    "tensortriage_engines": {
        "tensortriage.engines.sdk", "tensortriage.diagnose.sdk", "tensortriage.sdk", "tensortriage.api",
        "tensortriage_worker.shards",
    },
    "tensortriage_feeds": {
        "tensortriage.diagnose.sdk", "tensortriage.envelope.sdk", "tensortriage.sdk", "tensortriage.api"
    },
    "tensortriage_metrics": set(),
    "tensortriage_fleet": {
        "tensortriage", "tensortriage.model.sdk", "tensortriage.envelope.sdk", "tensortriage.sdk", "tensortriage.api"
    },
    "tensortriage_testing": {"tensortriage.engines.sdk", "tensortriage.testing.sdk", "tensortriage_worker.feeding"},
    "tensortriage_inspect": {
        "tensortriage.sdk", "tensortriage.model.sdk", "tensortriage.envelope.sdk", "tensortriage.engines.sdk",
        "tensortriage.api",
    },
    "tensortriage_meanings": {"tensortriage.diagnose.sdk", "tensortriage.model.sdk"},
    "tensortriage_operators": {"tensortriage.model.operator_bodies.operator_body"},
    "tensortriage_polygraphy": {
        "tensortriage", "tensortriage.model.sdk", "tensortriage.envelope.sdk", "tensortriage.sdk", "tensortriage.api"
    },
    "tensortriage_surgeon": {
        "tensortriage.envelope.sdk", "tensortriage.model.sdk", "tensortriage.sdk", "tensortriage.api"
    },
    "tensortriage_torch": {
        "tensortriage.engines.sdk", "tensortriage.diagnose.sdk", "tensortriage.sdk", "tensortriage_worker.shards"
    },
    "tensortriage_quantize": {
        "tensortriage.precision.sdk", "tensortriage.model.sdk", "tensortriage.envelope.sdk", "tensortriage.sdk",
        "tensortriage.diagnose.sdk", "tensortriage.api",
    },
    "tensortriage_steps": {
        "tensortriage.diagnose.sdk", "tensortriage.envelope.sdk", "tensortriage.sdk", "tensortriage.api",
        "tensortriage_worker.feeding",
    },
}  # fmt: skip
WORKER = {
    f"tensortriage_worker.{name}"
    for name in ("adapter", "declared", "converters", "encoding", "exchange", "heard", "script_adapter", "shards")
}  # what the worker offers to adapters
HALVES = [*sorted(HOME.glob("*/worker/*.py")), *sorted((ROOT / "src/tensortriage_torch/worker").glob("*.py"))]
FILES = [file for package in BESIDE for file in sorted(package.rglob("*.py")) if file not in HALVES]


def imported(file):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def package_of(file):
    return file.relative_to(ROOT / "src").parts[0]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(ROOT / "src").as_posix())
def test_what_is_optional_is_written_with_the_public_names_only(file):
    ours = {name for name in imported(file) if name.startswith("tensortriage")}
    own = package_of(file)
    assert {name for name in ours if f"{name}.".partition(".")[0] != own} <= PUBLIC[own]


@pytest.mark.parametrize("file", HALVES, ids=lambda file: file.relative_to(ROOT / "src").as_posix())
def test_its_half_in_the_worker_knows_the_worker_and_itself(file):
    own = ".".join(file.parent.relative_to(ROOT / "src").parts) + "."
    ours = {name for name in imported(file) if name.startswith("tensortriage")}
    assert {name for name in ours if not f"{name}.".startswith(own)} <= WORKER


@pytest.mark.parametrize("folder", sorted(path.parent for path in HOME.glob("*/engine.py")), ids=lambda path: path.name)
def test_both_halves_are_in_one_folder(folder):
    assert (folder / "worker" / "adapter.py").is_file()
    assert list((Path(__file__).parent / HOME.name / folder.name).glob("test_*.py"))


PRIVATE = """
import builtins, importlib, pkgutil, {package}

plain = builtins.__import__

def public_alone(name, globals=None, *more):
    asks = (globals or {{}}).get("__name__", "")
    if asks.startswith("{package}") and name.partition(".")[0] == "tensortriage" and name not in {public}:
        raise ImportError(f"{{name}} is private")
    return plain(name, globals, *more)

builtins.__import__ = public_alone
for module in pkgutil.walk_packages({package}.__path__, "{package}."):
    if ".worker" not in module.name:
        importlib.import_module(module.name)
        print(module.name)
"""


@pytest.mark.lengthy
@pytest.mark.parametrize("package", BESIDE, ids=lambda path: path.name)
def test_each_is_there_with_the_rest_of_the_package_private(package):
    code = PRIVATE.format(package=package.name, public=tuple(PUBLIC[package.name]))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    files = [file for file in FILES if package_of(file) == package.name and file.parent != package]
    wanted = {".".join(file.relative_to(ROOT / "src").with_suffix("").parts) for file in files}
    assert set(done.stdout.split()) >= {name.removesuffix(".__init__") for name in wanted}


@pytest.mark.parametrize("package", BESIDE, ids=lambda path: path.name)
def test_each_says_what_it_is_and_has_tests_of_its_own(package):
    lines = (package / "README.md").read_text().splitlines()
    assert lines[0] == f"# {package.name}"
    assert 5 <= len(lines) <= 12
    assert list((Path(__file__).parent / package.name).rglob("test_*.py"))
    assert f"({package.name})" in (ROOT / "docs/development/architecture.md").read_text().replace("../../src/", "")
    assert f"src/{package.name}" in PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]


def test_nothing_is_in_a_table_and_an_entry_point():
    """And no table of the core names a package next to it."""
    assert set(registry.BUILT_IN).isdisjoint(POINTS[registry.GROUP])
    tables = {
        overview.GROUP: overview.COMMANDS,
        f"{overview.GROUP}.check": groups.CHECK,
        f"{overview.GROUP}.debug": groups.DEBUG,
        f"{overview.GROUP}.inspect": {},
        f"{overview.GROUP}.engines": {},
        f"{overview.GROUP}.surgeon": {},
    }
    assert tables.keys() == {group for group in POINTS if group.startswith(overview.GROUP)}
    assert all(set(table).isdisjoint(POINTS[group]) for group, table in tables.items())
    rows = (row for table in tables.values() for row in table.values())
    places = [*registry.BUILT_IN.values(), *(place for place, _ in rows)]
    assert all(place.startswith("tensortriage.") for place in places)


def test_what_is_declared_is_installed_and_can_be_had():
    """What an installation knows of entry points is as old as itself."""
    for group, points in POINTS.items():
        found = {point.name: point for point in importlib.metadata.entry_points(group=group)}
        assert {name: found[name].value for name in points} == points
        assert all(found[name].load() for name in points)


def test_the_cluster_knows_nothing_of_batches():
    """And but for what runs checks on it, nothing of engines, models or verdicts."""
    files = sorted((ROOT / "src/tensortriage_fleet/cluster").glob("*.py"))
    assert not {name for file in files for name in imported(file) if name.startswith("tensortriage_fleet.batch")}

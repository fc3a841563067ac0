"""What is optional lives at the edge: it imports what a plug-in from outside may, and the rest is private to it."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import tensortriage.cluster
import tensortriage_batch
import tensortriage_engines
from tensortriage import cli
from tensortriage.engines import registry

BATCH = Path(tensortriage_batch.__file__).parent
HOME = Path(tensortriage_engines.__file__).parent
PUBLIC = ("tensortriage.engines.sdk", "tensortriage.api")
PUBLIC_FOR_COMMANDS = ("tensortriage.sdk", "tensortriage.api")
WORKER = {
    f"tensortriage_worker.{name}" for name in ("adapter", "declared", "converters", "exchange", "heard", "shards")
}  # what the worker offers to adapters
HOSTS = sorted(HOME.glob("*/*.py"))
HALVES = sorted(HOME.glob("*/worker/*.py"))
POINTS = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["entry-points"]


def imported(file):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@pytest.mark.parametrize("file", HOSTS, ids=lambda file: file.relative_to(HOME).as_posix())
def test_an_optional_engine_is_written_with_the_public_names_only(file):
    ours = {name for name in imported(file) if name.startswith("tensortriage")}
    assert ours <= {*PUBLIC, "tensortriage_worker.shards"}


@pytest.mark.parametrize("file", HALVES, ids=lambda file: file.relative_to(HOME).as_posix())
def test_its_half_in_the_worker_knows_the_worker_and_itself(file):
    own = f"tensortriage_engines.{file.parts[-3]}.worker."
    ours = {name for name in imported(file) if name.startswith("tensortriage")}
    assert {name for name in ours if not name.startswith(own)} <= WORKER


@pytest.mark.parametrize(
    "folder", sorted(path.parent for path in HOSTS if path.name == "engine.py"), ids=lambda p: p.name
)
def test_both_halves_are_in_one_folder(folder):
    assert (folder / "worker" / "adapter.py").is_file()
    assert list((Path(__file__).parent / HOME.name / folder.name).glob("test_*.py"))


@pytest.mark.parametrize("file", sorted(BATCH.glob("*.py")), ids=lambda file: file.name)
def test_batch_is_written_with_the_public_names_only(file):
    ours = {name for name in imported(file) if name.startswith("tensortriage")}
    assert {name for name in ours if not name.startswith("tensortriage_batch.")} <= {*PUBLIC_FOR_COMMANDS}


PRIVATE = """
import builtins, importlib, pkgutil, tensortriage_batch

plain = builtins.__import__

def public_alone(name, globals=None, *more):
    asks = (globals or {{}}).get("__name__", "")
    if asks.startswith("tensortriage_batch") and name.partition(".")[0] == "tensortriage" and name not in {public}:
        raise ImportError(f"{{name}} is private")
    return plain(name, globals, *more)

builtins.__import__ = public_alone
for module in pkgutil.iter_modules(tensortriage_batch.__path__):
    importlib.import_module(f"tensortriage_batch.{{module.name}}")
    print(module.name)
"""


def test_batch_is_there_with_the_rest_of_the_package_private():
    code = PRIVATE.format(public=PUBLIC_FOR_COMMANDS)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert set(done.stdout.split()) == {file.stem for file in BATCH.glob("*.py")} - {"__init__"}


def test_what_is_optional_is_registered_as_that_of_others_is():
    """The tables, which need no metadata of a package, say nothing else."""
    engines = {name: place for name, place in registry.BUILT_IN.items() if not place.startswith("tensortriage.")}
    commands = {name: place for name, (place, _) in cli.COMMANDS.items() if not place.startswith("tensortriage.")}
    assert {registry.GROUP: engines, cli.GROUP: commands} == POINTS


def test_the_cluster_is_a_floor_of_its_own():
    """Work elsewhere knows nothing of engines, models or verdicts."""
    files = sorted(Path(tensortriage.cluster.__file__).parent.glob("*.py"))
    ours = {name for file in files for name in imported(file) if name.startswith("tensortriage")}
    assert {name for name in ours if not name.startswith("tensortriage.cluster")} <= {
        "tensortriage",
        "tensortriage.errors",
    }

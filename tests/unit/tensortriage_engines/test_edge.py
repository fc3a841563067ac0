"""What is optional lives at the edge: it imports what a plug-in from outside may, and the rest is private to it."""

import ast
from pathlib import Path

import pytest

import tensortriage.cluster
import tensortriage_engines

HOME = Path(tensortriage_engines.__file__).parent
PUBLIC = ("tensortriage.engines.sdk", "tensortriage.api")
WORKER = {
    f"tensortriage_worker.{name}" for name in ("adapter", "declared", "converters", "exchange", "shards")
}  # what the worker offers to adapters
HOSTS = sorted(HOME.glob("*/*.py"))
HALVES = sorted(HOME.glob("*/worker/*.py"))


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
    assert list((Path(__file__).parent / folder.name).glob("test_*.py"))


def test_the_cluster_is_a_floor_of_its_own():
    """Work elsewhere knows nothing of engines, models or verdicts."""
    files = sorted(Path(tensortriage.cluster.__file__).parent.glob("*.py"))
    ours = {name for file in files for name in imported(file) if name.startswith("tensortriage")}
    assert {name for name in ours if not name.startswith("tensortriage.cluster")} <= {
        "tensortriage",
        "tensortriage.errors",
    }

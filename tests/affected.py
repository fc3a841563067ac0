"""The test files that a change concerns, nearest first: for `make quick`, and for who asks which tests hold a module.

    python tests/affected.py [--seconds S] [--costs FILE] [FILE ...]

Without files: what differs from the branch ``main`` (from the last commit, on ``main`` itself), new files included.
First come the tests that changed, those in the place that mirrors a changed module, and those that import it; then
those of its package; then those of what imports it, step by step upwards. ``--seconds`` stops before the tests' costs,
as ``--costs`` of the last `make test` wrote them, add up to more.
"""

import argparse
import ast
import functools
import itertools
import json
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import grimp

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests"
FOLDERS = (ROOT / "src", ROOT / "worker")
UNKNOWN_SECONDS = 0.5
"""What a file is taken to cost that was never run: the median of those that were."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--costs", type=Path, default=ROOT / ".venv/costs.json")
    arguments = parser.parse_args()
    costs = json.loads(arguments.costs.read_text(encoding="utf-8")) if arguments.costs.exists() else {}
    files = [file.resolve() for file in arguments.files] or changed_files()
    for name in affordable(nearest(files), costs, arguments.seconds):
        print(name)  # noqa: T201


def affordable(files: Iterable[Path], costs: dict[str, float], seconds: float) -> Iterator[str]:
    """Yield names of files from the root of the repository until their costs add up to more than the seconds."""
    for file in files:
        name = file.relative_to(ROOT).as_posix()
        seconds -= costs.get(name, UNKNOWN_SECONDS)
        if seconds < 0:
            return
        yield name


def changed_files() -> list[Path]:
    """Return what the work at hand changed or added; of what was removed nothing."""
    begun = _git("merge-base", "HEAD", "main") or ["HEAD"]
    names = {*_git("diff", "--name-only", *begun), *_git("ls-files", "--others", "--exclude-standard")}
    return [ROOT / name for name in sorted(names) if (ROOT / name).exists()]


def _git(*words: str) -> list[str]:
    """Return the lines that git prints; none where there is no repository, or no such branch."""
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return []
    return done.stdout.splitlines() if done.returncode == 0 else []


def nearest(files: Iterable[Path]) -> Iterator[Path]:
    """Yield every test file that the files concern, once, nearest first."""
    modules = {name for file in files if (name := module_name(file))}
    own = [file for file in files if _is_test(file)]
    helpers = {_helper_name(file) for file in files if TESTS in file.parents and not _is_test(file)}
    given = set()
    for found in itertools.chain([own, _importing(_with_users(helpers))], _by_distance(modules)):
        for file in found:
            if file not in given:
                given.add(file)
                yield file


def _by_distance(modules: set[str]) -> Iterator[list[Path]]:
    """Yield the tests of modules, of their packages, of who imports them, of who imports those, and so on."""
    yield tests_of(modules)
    folders = {place.parent for name in modules if (place := _mirror(name))}
    yield [file for folder in sorted(folders) for file in sorted(folder.glob("test_*.py"))]
    seen, edge = set(modules), modules
    while edge:
        graph = import_graph()
        edge = {user for name in edge & graph.modules for user in graph.find_modules_that_directly_import(name)} - seen
        seen |= edge
        yield [file for name in sorted(edge) if (file := _mirror(name)) and file.exists()]


def tests_of(modules: set[str]) -> list[Path]:
    """Return the tests that belong to modules: in the place that mirrors one, or importing one by name."""
    mirrored = [file for name in sorted(modules) if (file := _mirror(name)) and file.exists()]
    return [*mirrored, *(file for file in _importing(modules) if file not in mirrored)]


@functools.cache
def import_graph() -> "grimp.ImportGraph":
    import grimp  # half a second that only some questions need

    packages = sorted(entry.parent.name for folder in FOLDERS for entry in folder.glob("*/__init__.py"))
    return grimp.build_graph(*packages, cache_dir=str(ROOT / ".import_linter_cache"))


def module_name(file: Path) -> str:
    """Return the name by which a file of the product is imported; none for other files."""
    for folder in FOLDERS:
        if folder in file.parents and file.suffix == ".py":
            return ".".join(file.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")
    return ""


def _mirror(module: str) -> Path | None:
    """Return where the tests of a module belong: a package's beside those of its modules."""
    top, *rest = module.split(".")
    start = {"tensortriage": TESTS / "unit", "tensortriage_worker": TESTS / "unit/worker"}.get(
        top, TESTS / "unit" / top
    )
    return start.joinpath(*rest[:-1], f"test_{rest[-1]}.py") if rest else None


def _is_test(file: Path) -> bool:
    return TESTS in file.parents and file.name.startswith("test_") and file.suffix == ".py"


def _helper_name(file: Path) -> str:
    return ".".join(file.relative_to(TESTS).with_suffix("").parts)


def _importing(names: set[str]) -> list[Path]:
    """Return the test files that import one of the names."""
    return [file for file, used in _imports().items() if _is_test(file) and used & names]


def _with_users(helpers: set[str]) -> set[str]:
    """Return helpers of the tests and those that import them."""
    while (
        more := {_helper_name(file) for file, used in _imports().items() if not _is_test(file) and used & helpers}
        - helpers
    ):
        helpers = helpers | more
    return helpers


@functools.cache
def _imports() -> dict[Path, frozenset[str]]:
    """Return what each file of the tests imports: modules, and what may be modules."""
    found = {}
    for file in sorted(TESTS.rglob("*.py")):
        names = set()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {each.name for each in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
        found[file] = frozenset(names)
    return found


if __name__ == "__main__":
    main()

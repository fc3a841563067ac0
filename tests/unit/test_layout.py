"""What a newcomer relies on: small folders, names that mean one thing, import contracts that leave no package out."""

import ast
import re
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = (
    ROOT / "src/tensortriage",
    *sorted(path for path in (ROOT / "src").glob("tensortriage_*") if path.is_dir()),
    ROOT / "worker/tensortriage_worker",
)
MOST_MODULES = 16
MOST_LINES = 400
FILES = [file for package in PACKAGES for file in sorted(package.rglob("*.py"))]
FOLDERS = sorted({file.parent for file in FILES})
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.relative_to(ROOT).as_posix())
def test_a_folder_has_few_modules_and_says_what_they_are(folder):
    assert len([file for file in folder.glob("*.py") if file.name != "__init__.py"]) <= MOST_MODULES
    assert (folder / "__init__.py").read_text().startswith('"""')


def test_no_module_is_longer_than_can_be_read_at_once():
    lengths = {file.relative_to(ROOT).as_posix(): len(file.read_text().splitlines()) for file in FILES}
    assert {name: length for name, length in lengths.items() if length > MOST_LINES} == {}


def test_a_public_class_name_means_one_thing():
    places = defaultdict(list)
    for file in FILES:
        for name in re.findall(r"^class ([A-Za-z]\w*)", file.read_text(), re.MULTILINE):
            places[name].append(file)
    meant = {name: [file for file in files if name in classes(file)] for name, files in places.items() if files[1:]}
    assert {name: files for name, files in meant.items() if files[1:]} == {}


def classes(file):
    """Return the names of a module's own classes, without those of programs in its texts."""
    return {node.name for node in ast.parse(file.read_text()).body if isinstance(node, ast.ClassDef)}


@pytest.mark.parametrize(
    ("contract", "free"),
    [
        ("onnx and onnx_ir have one door", {"model", "engines"}),
        ("Only its own module imports an engine's package", {"engines"}),
    ],
)
def test_a_contract_about_libraries_covers_every_package(contract, free):
    """``engines`` is named by its parts, because those that are about the library are left out."""
    (found,) = [entry for entry in CONTRACTS if entry["name"] == contract]
    package = PACKAGES[0]
    names = {entry.stem for entry in package.iterdir() if entry.suffix == ".py" or (entry / "__init__.py").exists()}
    covered = {name.removeprefix("tensortriage.").split(".")[0] for name in found["source_modules"]}
    assert names - {"__init__"} - free <= covered


@pytest.mark.parametrize("package", PACKAGES[1:-1], ids=lambda package: package.name)
def test_the_architecture_page_names_what_a_package_beside_the_core_imports(package):
    text = (ROOT / "docs" / "development" / "architecture.md").read_text()
    (row,) = [line for line in text.splitlines() if line.startswith(f"| [`{package.name}`]")]
    nodes = (node for file in package.rglob("*.py") for node in ast.walk(ast.parse(file.read_text())))
    found = {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    others = {name if name.startswith("tensortriage.") else name.partition(".")[0] for name in found} - {package.name}
    named = set(re.findall(r"`(tensortriage[.\w]*)`", row.rpartition(" | ")[2]))
    assert {name for name in others if re.match("tensortriage[._]", name)} == named


OWN_TO_RUNS = {
    "tensortriage.runs.observation.runner": None,
    "tensortriage.runs.observation.asking": None,
    "tensortriage.runs.observation.sessions": None,
    "tensortriage.runs.observation.capture": {"capture"},
    "tensortriage.runs.observation.answers": None,
    "tensortriage.runs.check_cache": {"CheckCache"},
    "tensortriage.engines.registry": {"create"},
}
"""Modules, or names of them, that ask engines; everything else describes an experiment and has the lab answer it."""

COMPILES = {"compile", "compile_model", "compile_in_place"}
"""Methods of engines; those beside the core have engines of their own, whose parts they may call."""

ABOUT_ENGINES = {
    "runs": "its lab answers experiments",
    "engines": "they are the engines",
    "testing": "holds an engine against the protocol, call by call",
    "workflows/engines": "tells of an engine itself: its parser, its environment, its networks",
    "cli/refusals.py": "reads the names of an engine's options; nothing is built",
}


def test_engines_are_asked_by_the_lab_alone():
    asking = set()
    for module in FILES:
        place, own = module.relative_to(ROOT).as_posix(), module.is_relative_to(PACKAGES[0])
        if own and any(module.is_relative_to(PACKAGES[0] / free) for free in ABOUT_ENGINES):
            continue
        text = module.read_text()
        if not any(word in text for word in (*OWN_TO_RUNS, *COMPILES)):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module in OWN_TO_RUNS:
                names = OWN_TO_RUNS[node.module]
                asking |= {place for each in node.names if names is None or each.name in names}
            elif own and isinstance(node, ast.Attribute) and getattr(node.value, "id", "") != "re":
                asking |= {place for name in COMPILES if node.attr == name}
    assert asking == set()


def test_answers_of_a_case_are_read_and_kept_by_the_lab_alone():
    reaching = set()
    for module in sorted(PACKAGES[0].rglob("*.py")):
        place = module.relative_to(PACKAGES[0]).as_posix()
        text = module.read_text()
        for node in ast.walk(ast.parse(text)) if ".checks" in text else ():
            if isinstance(node, ast.Attribute) and node.attr == "checks":
                owner = getattr(node.value, "attr", getattr(node.value, "id", ""))
                if owner in ("case", "_case") and not place.startswith("runs/"):
                    reaching.add(place)
    assert reaching == set()

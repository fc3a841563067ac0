"""pytest's side: options, the fixture ``triage``, and where cases of assertions are kept. It imports nothing heavy."""

import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = "triage"
FAIL_WORDS = ("output", "verdict", "model", "data", "missing", "engine", "version")


def pytest_addoption(parser: Any) -> None:
    """Add the options, which are named after those of pytest-benchmark."""
    group = parser.getgroup("triage", "models, by TensorTriage")
    group.addoption("--triage-save", metavar="NAME", nargs="?", const="", type=_name,
                    help="Save the results of triage.check as baselines, in .triage-baseline-NAME.")  # fmt: skip
    group.addoption("--triage-compare", metavar="NAME", nargs="?", const="", type=_name,
                    help="Compare with these; without NAME, with those of 'triage baseline save'.")  # fmt: skip
    group.addoption("--triage-fail", metavar="WORDS", type=_words,
                    help=f"Changes that fail a test, of {','.join(FAIL_WORDS)} (default: the first five).")  # fmt: skip


def pytest_configure(config: Any) -> None:
    """Keep the cases of tests in pytest's cache, where a test that is run again finds its answers."""
    if hasattr(config, "cache"):
        _Places.folder = Path(config.cache.mkdir(FOLDER))


def pytest_runtest_call() -> None:
    """Pass the folder to the assertions, once they are imported."""
    checks: Any = sys.modules.get("tensortriage_fleet.assertions.checks")
    if checks is not None and _Places.folder is not None:
        checks.CASES[:] = [_Places.folder]


@pytest.fixture
def triage(request: Any, tmp_path_factory: Any) -> Any:
    """Models on engines: ``triage.check(model, target, inputs=...)`` against a baseline; sound, close and same."""
    from tensortriage_fleet.assertions.baselines import triage_for

    return triage_for(request, _Places.folder or tmp_path_factory.mktemp(FOLDER), request.config.option)


def _name(word: str) -> str:
    if word and (not word.replace("-", "").replace("_", "").replace(".", "").isalnum() or Path(word).exists()):
        raise pytest.UsageError(
            f"{word!r} is not a name of baselines: write --triage-compare=NAME, or the option after the tests"
        )
    return word


def _words(text: str) -> str:
    for word in text.replace(",", " ").split():
        if word not in FAIL_WORDS:
            raise pytest.UsageError(f"--triage-fail: {word!r} is none of {', '.join(FAIL_WORDS)}")
    return text


class _Places:
    folder: Path | None = None

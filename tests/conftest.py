"""What holds for every test: signals reach what they start; neither luck nor a busy machine decides what passes.

Whoever starts the tests may ignore signals (nohup, a job in the background), and all that they start inherits it.
Containers like to forbid Python to keep what it compiles, and a quarter of all processes' time would be compiling.

Hypothesis tries the same examples in every run, unless ``FUZZ_SEED`` is set (`make fuzz`): then those of that seed, and
more of them.
"""

import functools
import gc
import os
import re
import signal
import sys
from pathlib import Path

import hypothesis
import pytest
from _pytest.pathlib import import_path

import forked_workers
from hostile.tally import IS_FREE, TIMES

pytest_plugins = ("processor_time",)

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

hypothesis.settings.register_profile(
    "any-load",
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    derandomize=not IS_FREE,
    max_examples=round(100 * max(1.0, TIMES**0.5)),
)
hypothesis.settings.load_profile("any-load")

for _number, _default in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGTERM, signal.SIG_DFL),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _default)


@pytest.fixture(autouse=True)
def _no_engine_is_known_from_another_test():
    """Engines are resolved once per process, and tests replace them."""
    from tensortriage.engines import registry

    registry._resolved.clear()


@pytest.fixture
def fresh_processes(monkeypatch):
    """Commands and workers are interpreters of their own, and import what they need, as for users."""
    monkeypatch.setenv(forked_workers.FRESH, "1")


def pytest_configure():
    import running_cli  # once its plugin is known

    forked_workers.install(running_cli.server)
    gc.disable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session):
    """Import a part of the test files first, each process another: what is new is compiled once, not by all of them."""
    given = getattr(session.config, "workerinput", None)
    if given is None:
        return
    folders = [path for path in map(Path, session.config.args) if path.is_dir()]
    files = sorted(file for folder in folders for file in folder.resolve().rglob("test_*.py"))
    wanted = [file for file in files if not pytest_ignore_collect(file, session.config)]
    for file in wanted[int(given["workerid"].removeprefix("gw")) :: given["workercount"]]:
        before = set(sys.modules)
        try:
            import_path(file, mode="importlib", root=session.config.rootpath, consider_namespace_packages=False)
        except (Exception, pytest.skip.Exception):  # it is told when the file is collected
            for name in set(sys.modules) - before:
                if getattr(sys.modules[name], "__file__", None) == str(file):
                    del sys.modules[name]


def pytest_collection_finish():
    """What is there by now stays: looking through it again and again would take seconds."""
    gc.freeze()
    gc.enable()


def pytest_addoption(parser):
    parser.addoption("--skipped-to", type=Path, metavar="FILE", help="write what was skipped, for --again")
    parser.addoption("--again", type=Path, metavar="FILE", help="run only what is listed in a file")
    parser.addoption("--rest-of", type=Path, metavar="FILE", help="run what is listed in a file, and what is lengthy")


def pytest_terminal_summary(terminalreporter, config):
    """Tell the seed of the fuzzers and what became of their inputs; write down what was skipped."""
    if (path := config.getoption("--skipped-to")) is not None:
        skipped = dict.fromkeys(report.nodeid for report in terminalreporter.stats.get("skipped", ()))
        path.write_text("".join(f"{name}\n" for name in skipped), encoding="utf-8")
    from hostile.tally import summary

    for line in summary(
        report
        for reports in terminalreporter.stats.values()
        for report in reports
        if hasattr(report, "user_properties")
    ):
        terminalreporter.write_line(line)


MARKERS_OF_FOLDERS = {"e2e": ("subprocess",), "engines": ("engine",), "fuzz": ("subprocess", "lengthy")}


ALL_LENGTHY = re.compile(r"^pytestmark = (?:pytest\.mark\.lengthy$|\[[^]]*pytest\.mark\.lengthy\b)", re.MULTILINE)


def pytest_ignore_collect(collection_path, config):
    """Leave out files that hold nothing of what is asked for: importing all takes as long as many tests."""
    if collection_path.suffix != ".py" or not collection_path.name.startswith("test_"):
        return None
    text = collection_path.read_text(encoding="utf-8")
    folder = collection_path.relative_to(Path(__file__).parent).parts[0]
    marked = "lengthy" in MARKERS_OF_FOLDERS.get(folder, ())
    some, wanted = marked or "lengthy" in text, config.getoption("-m")
    if (rest := config.getoption("--rest-of")) is not None:
        listed = collection_path.relative_to(config.rootpath).as_posix() in _modules(rest)
        return None if some or listed else True
    if wanted == "lengthy":
        return None if some else True
    return True if wanted == "not lengthy" and (marked or ALL_LENGTHY.search(text)) else None


def pytest_collection_modifyitems(config, items):
    """Mark tests by their place: what starts processes, what compiles models in engines; keep what is needed."""
    for item in items:
        folder = item.path.relative_to(Path(__file__).parent).parts[0]
        for marker in MARKERS_OF_FOLDERS.get(folder, ()):
            item.add_marker(marker)
    if (again := config.getoption("--again")) is not None:
        listed = _listed(again)
        _keep(items, config, lambda item: listed(item.nodeid))
    if (rest := config.getoption("--rest-of")) is not None:
        listed = _listed(rest)
        _keep(items, config, lambda item: listed(item.nodeid) or item.get_closest_marker("lengthy") is not None)


@functools.cache
def _names(path):
    return frozenset(path.read_text(encoding="utf-8").splitlines() if path.exists() else ())


@functools.cache
def _modules(path):
    return frozenset(name.partition("::")[0] for name in _names(path))


def _listed(path):
    """Return what says whether a file lists a test: by its name, without its case, or by its module."""
    names = _names(path)
    return lambda name: not names.isdisjoint((name, name.partition("[")[0], name.partition("::")[0]))


def _keep(items, config, wanted):
    """Leave out the tests that are not wanted."""
    kept = [item for item in items if wanted(item)]
    config.hook.pytest_deselected(items=[item for item in items if not wanted(item)])
    items[:] = kept

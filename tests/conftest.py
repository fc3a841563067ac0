"""What holds for every test: signals reach what they start; neither luck nor a busy machine decides what passes.

Whoever starts the tests may ignore signals (nohup, a job in the background), and all that they start inherits it.
Containers like to forbid Python to keep what it compiles, and a quarter of all processes' time would be compiling.

Hypothesis tries the same examples in every run, unless ``FUZZ_SEED`` is set (`make fuzz`): then those of that seed, and
more of them.
"""

import os
import signal
import sys
from pathlib import Path

import hypothesis
import pytest

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


def pytest_addoption(parser):
    parser.addoption("--skipped-to", type=Path, metavar="FILE", help="write what was skipped, for --again")
    parser.addoption("--again", type=Path, metavar="FILE", help="run only what is listed in a file")


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


def pytest_collection_modifyitems(config, items):
    """Mark tests by their place: what starts processes, what compiles models in engines; keep what is wanted."""
    for item in items:
        folder = item.path.relative_to(Path(__file__).parent).parts[0]
        for marker in MARKERS_OF_FOLDERS.get(folder, ()):
            item.add_marker(marker)
    if (again := config.getoption("--again")) is not None:
        _keep(items, config, _listed(again))


def _listed(path):
    """Return what says whether a file lists a test: by its name, without its case, or by its module."""
    names = set(path.read_text(encoding="utf-8").splitlines())
    return lambda name: not names.isdisjoint((name, name.partition("[")[0], name.partition("::")[0]))


def _keep(items, config, wanted):
    """Leave out the tests whose names are not wanted."""
    config.hook.pytest_deselected(items=[item for item in items if not wanted(item.nodeid)])
    items[:] = [item for item in items if wanted(item.nodeid)]

"""What each test file costs in processor time, and which cost more than they may: so `make test` stays short.

Counted is the time of the test's process and of all that it started, so that waiting does not change the figure. What
many files share counts for none: imports, the server of commands, shared diagnoses. Work next to it on the same cores
may double a file's time, so that the dear ones are named, and the run does not fail for them.
"""

import collections
import contextlib
import importlib
import json
import os
from pathlib import Path

import psutil
import pytest

IMPORTED_FIRST = (
    "onnxruntime",
    "openvino",
    "tensortriage.cli.diagnose.command",
    "tensortriage.cli.run.command",
    "tensortriage.report.renderers",
    "tensortriage_testing",
    "tensortriage.workflows.comparison.compare",
    "tensortriage.workflows.diagnosis.diagnose",
)


def seconds_so_far():
    """Return the processor time of this process and of all below it, those that have ended included."""
    own = os.times()
    total = own.user + own.system + own.children_user + own.children_system
    for process in psutil.Process().children(recursive=True):
        try:
            spent = process.cpu_times()
        except psutil.Error:  # it has ended, and its parent has its time
            continue
        total += spent.user + spent.system + spent.children_user + spent.children_system
    return total


_common_seconds = 0.0


@contextlib.contextmanager
def common():
    """Do something for many files, which counts as the time of none: whoever needs it first does it."""
    global _common_seconds
    before = seconds_so_far()
    try:
        yield
    finally:
        _common_seconds += seconds_so_far() - before


class Meter:
    """Counts in the process that runs the tests, file by file: reading the times of all processes takes a while."""

    def __init__(self):
        self.seconds = collections.Counter()
        self._since = None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item, nextitem):
        if self._since is None:
            warm_up(item.session.items)
            self._since = seconds_so_far() - _common_seconds
        result = yield
        if nextitem is None or _place(nextitem) != _place(item):
            now = seconds_so_far() - _common_seconds
            self.seconds[_place(item)] += now - self._since
            self._since = now
        return result

    def pytest_sessionfinish(self, session):
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["processor_seconds"] = dict(self.seconds)


def _place(item):
    """Return the name of a test's file; the test's own where it is not counted among the others."""
    return item.nodeid if item.get_closest_marker("unbudgeted") else item.location[0]


def warm_up(items):
    """Do what many files need and the first of them would pay for."""
    folders = {item.location[0].split("/")[1] for item in items}
    if folders & {"unit", "e2e", "engines", "golden"} and len({item.path for item in items}) > 1:
        for name in IMPORTED_FIRST:
            try:
                importlib.import_module(name)
            except ImportError:
                continue
    if "e2e" in folders:
        import running_cli

        running_cli.server()


class Budget:
    """Adds up what the processes counted, writes it down, and names the files that cost too much."""

    def __init__(self, meter, most, path):
        self._meter = meter  # of this process, where it runs the tests itself
        self._most = most
        self._path = path
        self.seconds = collections.Counter()

    def pytest_testnodedown(self, node):
        self.seconds.update(getattr(node, "workeroutput", {}).get("processor_seconds", {}))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session):
        self.seconds.update(self._meter.seconds)
        if self._path is not None:
            known = json.loads(self._path.read_text(encoding="utf-8")) if self._path.exists() else {}
            known |= {name: round(seconds, 2) for name, seconds in self.seconds.items()}
            self._path.write_text(json.dumps(known, indent=0, sort_keys=True), encoding="utf-8")

    def pytest_terminal_summary(self, terminalreporter):
        total = self.seconds.total()
        terminalreporter.write_line(f"processor time: {total:.0f} s in {len(self.seconds)} test files")
        if self._most is None:
            return
        dear = [(name, spent) for name, spent in self.seconds.most_common() if spent > self._most and "::" not in name]
        if not dear:
            return
        terminalreporter.section("over budget", yellow=True)
        for name, seconds in dear:
            terminalreporter.write_line(f"{name}: {seconds:.1f} s of processor time; {self._most:.1f} s are the most")
        terminalreporter.write_line(
            "On a quiet machine too? Make it cheaper (docs/development/testing.md says how), or mark what is not\n"
            "needed at every change with pytest.mark.lengthy: `make lengthy` and CI run that."
        )


def pytest_addoption(parser):
    parser.addoption("--budget", type=float, metavar="SECONDS", help="processor time that a test file may take")
    parser.addoption("--costs", type=Path, metavar="FILE", help="keep there what each test file costs (JSON)")


def pytest_configure(config):
    most, path = config.getoption("--budget"), config.getoption("--costs")
    if most is None and path is None:
        return
    config.pluginmanager.register(meter := Meter(), "processor-time")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Budget(meter, most, path), "budget-of-processor-time")

"""What holds for every test: signals reach what they start, and no test depends on how busy the machine is.

Whoever starts the tests may ignore signals (nohup, a job in the background), and all that they start inherits it.
Containers like to forbid Python to keep what it compiles, and a quarter of all processes' time would be compiling.
"""

import os
import signal
import sys
from pathlib import Path

import hypothesis

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

hypothesis.settings.register_profile("any-load", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("any-load")

for _number, _default in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGTERM, signal.SIG_DFL),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _default)


def pytest_terminal_summary(terminalreporter):
    """Tell the seed of the fuzzers, and what became of their inputs."""
    from hostile.tally import summary

    for line in summary(
        report
        for reports in terminalreporter.stats.values()
        for report in reports
        if hasattr(report, "user_properties")
    ):
        terminalreporter.write_line(line)


MARKERS_OF_FOLDERS = {"e2e": "subprocess", "engines": "engine", "fuzz": "subprocess"}


def pytest_collection_modifyitems(items):
    """Mark tests by their place: what starts processes, and what compiles models in engines."""
    for item in items:
        folder = item.path.relative_to(Path(__file__).parent).parts[0]
        if folder in MARKERS_OF_FOLDERS:
            item.add_marker(MARKERS_OF_FOLDERS[folder])

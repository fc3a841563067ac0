"""Engines keep to themselves: their telemetry is switched off before it can be imported.

The models are their owners' secrets. ONNX Runtime (from 1.29) sends events and keeps a device id and a database in
the cache folder unless an environment variable forbids it before its library is loaded; OpenVINO's Python package
reports every import through ``openvino_telemetry`` and leaves a client id in HOME, and goes without that package where
it cannot be imported. The switches are inherited by every process that this one starts.
"""

import os
import sys

SWITCHES = {
    "ORT_DISABLE_TELEMETRY": "1",  # ONNX Runtime 1.29 and later; seen with 1.31.1: no device id, no database, no upload
    "ORT_TELEMETRY_DISABLED": "1",  # its name in ONNX Runtime's main branch (pull request 29843)
    "HF_HUB_DISABLE_TELEMETRY": "1",  # huggingface_hub, which users' scripts import
    "DO_NOT_TRACK": "1",  # https://consoledonottrack.com
}
"""Environment variables and the value that forbids reports."""
APART = "TENSORTRIAGE_ENGINES_APART"
"""Set where engines that work in the program's own process are to work in workers, because it crashed with them."""
REPORTERS = ("openvino_telemetry",)
"""Packages whose only purpose is telemetry; importing them fails as if they were not installed."""


def silence() -> None:
    """Forbid reports in this process and in those that it will start; calling it again is harmless."""
    os.environ.update(SWITCHES)
    for name in REPORTERS:
        sys.modules[name] = None  # type: ignore[assignment] # the documented way to make an import fail

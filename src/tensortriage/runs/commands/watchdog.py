"""A tiny process that kills the commands that still run when this process is gone.

After a kill -9 nobody is left to clean up, and an orphaned check would go on using the machine, the model file and the
artifacts of the next run. The watchdog reads from a pipe that only this process holds; at its end, for whatever reason,
it kills the process groups that it has received.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading

_SCRIPT = f"""
import os, sys
groups = set()
for line in sys.stdin:
    (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
for group in groups:
    try:
        os.killpg(group, {int(getattr(signal, "SIGKILL", 0))})
    except OSError:
        pass
"""


class Watchdog:
    """Guards process groups; starts its process with the first one."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._closed = False

    def guard(self, group: int) -> None:
        """Have a process group killed should this process end."""
        self._tell(f"+{group}\n")

    def release(self, group: int) -> None:
        """Forget a process group."""
        self._tell(f"-{group}\n")

    def close(self) -> None:
        """End the watchdog, which kills the processes still guarded; what a thread tells it afterwards is dropped."""
        with self._lock:
            self._closed = True
            if self._process is not None and self._process.stdin is not None:
                with contextlib.suppress(OSError):
                    self._process.stdin.close()
                self._process.wait()
                self._process = None

    def _tell(self, line: str) -> None:
        with self._lock:
            if self._closed:
                return
            if self._process is None:
                self._process = subprocess.Popen(
                    [sys.executable, "-S", "-E", "-c", _SCRIPT],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            assert self._process.stdin is not None
            with contextlib.suppress(OSError):  # a watchdog that was killed protects nothing, and hinders nothing
                self._process.stdin.write(line.encode())
                self._process.stdin.flush()


def kill_group(group: int) -> None:
    """Kill a process group; one that is gone already is fine."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)

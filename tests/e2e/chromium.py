"""A headless Chromium driven over a pipe by the Chrome DevTools Protocol; no package needed, no port opened."""

import contextlib
import itertools
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

CANDIDATES = ("chromium", "chromium-browser", "google-chrome", "chrome")
TIMEOUT_SECONDS = 20.0
# The browser reads commands from descriptor 3 and writes messages to 4, whatever numbers the pipes have here.
_LAUNCHER = """
import fcntl, os, sys
pipes = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3]]
os.dup2(pipes[0], 3)
os.dup2(pipes[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def find_chromium() -> str | None:
    """Return the path of an installed browser, or None."""
    return next((path for name in CANDIDATES if (path := shutil.which(name))), None)


class Page:
    """The one tab of a browser; every message of the browser is kept in ``events``."""

    def __init__(self, commands: int, messages: int) -> None:
        self._commands, self._messages = commands, messages
        self._ids = itertools.count(1)
        self._pending = b""
        self._session = ""
        self.events: list[dict[str, Any]] = []
        targets = self.call("Target.getTargets")["targetInfos"]
        tab = next(target for target in targets if target["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=tab["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log", "Accessibility"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send one command and return its result."""
        number = self._send(method, parameters)
        while True:
            reply = self._read()
            if reply.get("id") == number:
                assert "error" not in reply, f"{method}: {reply['error']}"
                return dict(reply["result"])

    def _send(self, method: str, parameters: dict[str, Any]) -> int:
        number = next(self._ids)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        return number

    def _read(self) -> dict[str, Any]:
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while b"\0" not in self._pending:
            ready, _, _ = select.select([self._messages], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "the browser did not answer in time"
            chunk = os.read(self._messages, 1 << 20)
            assert chunk, "the browser ended"
            self._pending += chunk
        line, _, self._pending = self._pending.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        if "method" in message:
            self.events.append(message)
        if message.get("method") == "Page.javascriptDialogOpening":
            # An open dialog blocks the page; it stays in `events` as the proof that one was opened.
            self._send("Page.handleJavaScriptDialog", {"accept": True})
        return message

    def open(self, path: Path, fragment: str = "") -> None:
        """Load a local file, not the one that is open, at a place of it; wait until it is loaded and drawn."""
        self.events.clear()
        self.call("Page.navigate", url=path.resolve().as_uri() + fragment)
        while not self.seen("Page.loadEventFired"):
            self._read()
        self.call("Page.captureScreenshot", format="jpeg", quality=1)

    def run(self, expression: str) -> Any:
        """Evaluate JavaScript, wait for a promise, return the value."""
        reply = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in reply, reply["exceptionDetails"]
        return reply["result"].get("value")

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Wait until something outside the page is true, e.g. that a file was saved."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not condition():
            assert time.monotonic() < deadline, "it did not happen in time"
            time.sleep(0.01)

    def seen(self, method: str) -> list[dict[str, Any]]:
        """Return the parameters of all events of one kind since the page was opened."""
        return [event["params"] for event in self.events if event["method"] == method]

    def click(self, x: float, y: float) -> None:
        """Move the mouse to a point of the window and press its left button."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str) -> None:
        """Press and release one key."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def errors(self) -> list[str]:
        """Return everything that went wrong on the page: uncaught exceptions and console errors."""
        uncaught = [str(event["exceptionDetails"]) for event in self.seen("Runtime.exceptionThrown")]
        logged = [event["entry"]["text"] for event in self.seen("Log.entryAdded") if event["entry"]["level"] == "error"]
        return uncaught + logged


@contextlib.contextmanager
def chromium(program: str, profile: Path, *, width: int = 1400, height: int = 1000) -> Iterator[Page]:
    """Start a browser with a fresh profile; it ends with the context."""
    command_read, command_write = os.pipe()
    message_read, message_write = os.pipe()
    flags = [
        "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-pipe",
        f"--user-data-dir={profile}", f"--window-size={width},{height}", "about:blank",
    ]  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-c", _LAUNCHER, str(command_read), str(message_write), program, *flags],
        pass_fds=(command_read, message_write),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(command_read)
    os.close(message_write)
    try:
        page = Page(command_write, message_read)
        yield page
        page._session = ""
        page.call("Browser.close")
        process.wait(timeout=TIMEOUT_SECONDS)
    finally:
        process.kill()
        process.wait()
        os.close(command_write)
        os.close(message_read)

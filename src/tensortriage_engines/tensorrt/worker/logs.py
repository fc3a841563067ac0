"""Findings in a TensorRT log about a build, read line by line during the build.

The log is the only place where TensorRT reports that weights do not fit a format, or that a constraint was not kept. A
`LogMiner` keeps those lines, and the last ones of any kind for an error's reason, and passes every line to the reader
of tactics; nothing else is kept, since a verbose log has gigabytes.
"""

from __future__ import annotations

import collections
import re
import sys
import threading
from typing import Any, Callable, Deque, Dict, List, Optional, Pattern, Tuple

FINDINGS = (
    ("weights-overflow", r"would overflow in (?:FP16|BF16|FP8)|values? (?:is|are) out of (?:FP16|BF16) range"),
    ("weights-subnormal", r"[Ss]ubnormal (?:FP16|BF16|FP8)? ?values? detected|smallest positive (?:FP16|BF16)"),
    ("weights-narrowed", r"INT64 weights|cast down to INT32|weights outside the range of INT32"),
    ("layernorm-fp16", r"[Ll]ayernorm nodes in FP16|[Ll]ayernorm after self-attention"),
    ("constraint-ignored", r"obeys? (?:requested|reformatting)|precision constraint|requested (?:layer )?precision"),
    ("calibration-missing", r"Missing (?:scale and zero-point|dynamic range)|[Cc]alibrator is not being used"),
    ("tactic-memory", r"[Ss]kipping tactic|insufficient (?:memory|workspace)|[Tt]actic .*requested .*(?:memory|MB)"),
    ("timing-cache-miss", r"[Tt]iming cache miss|not found in (?:the )?timing cache"),
)  # fmt: skip
"""Kind of finding, and a phrase of the lines that report it.

Wording: logs of TensorRT 8.4 to 10.10 in NVIDIA/TensorRT issues 2232, 2781, 3692, 3748 and 4493.
"""
EXAMPLES_KEPT = 5
TAIL_LINES = 40
LONGEST = 300
_WEIGHTS = re.compile(r"Weights \[name=(.*)\] had the following issues when converted to")
_ORDER = {"INTERNAL_ERROR": 0, "ERROR": 1, "WARNING": 2, "INFO": 3, "VERBOSE": 4}
_ERROR_HEAD = re.compile(r"^\s*(?:\[[^\]]*\]\s*)?\d+: \[[^\]]*\]\s*|^\s*(?:IBuilder::\w+|IRuntime::\w+): ")


class LogMiner:
    """Takes every message of a TensorRT logger; safe to call from several threads.

    Args:
        echo: Whether warnings and errors also go to stderr, where the host finds the last words of a dead process.

    Attributes:
        findings: Kind: number of lines, and examples.
        lines: Numbers of lines by severity.
        also: Receives every message as well, verbose ones included; None for no receiver.
    """

    def __init__(self, *, echo: bool = True) -> None:
        self.findings: Dict[str, Dict[str, Any]] = {}
        self.lines: collections.Counter[str] = collections.Counter()
        self.also: Optional[Callable[[str], None]] = None
        self._echo = echo
        self._tail: Deque[Tuple[str, str]] = collections.deque(maxlen=TAIL_LINES)
        self._patterns: List[Tuple[str, Pattern[str]]] = [(kind, re.compile(pattern)) for kind, pattern in FINDINGS]
        self._weights = ""  # the weights that the next lines are about
        self._lock = threading.Lock()

    def __call__(self, severity: str, message: str) -> None:
        """Take one message."""
        with self._lock:
            self.lines[severity] += 1
            if self.also is not None:
                self.also(message)
            if _ORDER.get(severity, 0) >= _ORDER["VERBOSE"]:
                return
            self._tail.append((severity, message))
            if _ORDER.get(severity, 0) <= _ORDER["WARNING"]:
                self._mine(message)
                if self._echo:
                    sys.stderr.write("[TensorRT {}] {}\n".format(severity.lower(), message))

    def _mine(self, message: str) -> None:
        about = _WEIGHTS.search(message)
        if about:
            self._weights = about.group(1)
        for kind, pattern in self._patterns:
            if not pattern.search(message):
                continue
            found = self.findings.setdefault(kind, {"count": 0, "lines": []})
            line = " ".join(message.split()).lstrip("- ")
            if kind.startswith("weights-") and self._weights:
                line = "{}: {}".format(self._weights, line)
            found["count"] += 1
            if len(found["lines"]) < EXAMPLES_KEPT and line[:LONGEST] not in found["lines"]:
                found["lines"].append(line[:LONGEST])
            return

    def reason(self) -> str:
        """Return the errors of the log in one line, else its last warning; empty when there is none."""
        errors = [m for severity, m in self._tail if _ORDER.get(severity, 0) <= _ORDER["ERROR"]]
        warnings = [m for severity, m in self._tail if severity == "WARNING"]
        messages = list(dict.fromkeys(plain(message) for message in errors)) or [plain(m) for m in warnings[-1:]]
        return "; ".join(messages[-3:])

    def clear_tail(self) -> None:
        """Forget the last lines, so that a later reason is not an earlier one."""
        with self._lock:
            self._tail.clear()

    def summary(self) -> Dict[str, Any]:
        """Return findings and counts for the host."""
        return {"findings": self.findings, "lines": dict(self.lines)}


def plain(message: str) -> str:
    """Return a message of TensorRT without its error number and source place, on one line."""
    text = " ".join(message.split())
    while True:
        shorter = _ERROR_HEAD.sub("", text)
        if shorter == text:
            return text.rstrip(". ")
        text = shorter

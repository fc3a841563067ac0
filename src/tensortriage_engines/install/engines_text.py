"""Engines as text: one line each, and below it where else the engine can be used."""

import shlex


def engine_line(name: str, here: str | None, reason: str, command: str) -> str:
    """Return the line of an engine: its version here, or why it cannot be used and the one command that helps."""
    if here is not None:
        return f"  {name:<12} {here}".rstrip()
    return f"- {name:<12} {reason}{f': {command}' if command else ''}"


def environment_line(target: str, version: str) -> str:
    """Return the line of an environment that was made for an engine."""
    return f"  {'':<12} {target_line(version, target)}"


def target_line(version: str, target: str) -> str:
    """Return the target to write, quoted for a shell."""
    return f"{version}: --target {shlex.quote(target)}"

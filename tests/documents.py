"""Every document that a command prints or leaves is compared with the schema that the product ships for it.

Schemas allow further fields, for newer versions; here they do not, so that no field stays undescribed.
"""

import functools
import importlib.resources
import json
import os
import tempfile
from pathlib import Path

import jsonschema_rs

FOLDER = importlib.resources.files("tensortriage_fleet") / "schemas"
ENDING = ".schema.json"
UNDESCRIBED = frozenset({"baseline-envelope", "baseline-measured", "engine-code", "replay", "series", "store"})
"""Files that only the product reads."""
MOST_BYTES = 4 << 20
_LEFT_OUT = frozenset({"runs", "tmp", "engines"})
"""Folders of a case that hold arrays and models."""
_seen: set[tuple[str, int, int]] = set()


def check_documents(printed, folder):
    """Hold against their schemas what a command printed, and the documents in its folder that are new.

    Raises:
        AssertionError: For a document that is not as its schema says, or has none.
    """
    check(parsed(printed), "standard output")
    if Path(folder).resolve().is_relative_to(Path(tempfile.gettempdir()).resolve()):
        for file in _new_files(folder):
            check(parsed(file.read_bytes()), str(file))


def check(document, source):
    """Hold a document against its schema; what is none of the product's passes.

    Raises:
        AssertionError: When it does not hold.
    """
    name = document.get("format") if isinstance(document, dict) else None
    if not isinstance(name, str) or not name.startswith("tensortriage."):
        return
    kind = name.removeprefix("tensortriage.").partition("/")[0]
    if kind in UNDESCRIBED:
        return
    errors = [f"{error.message} at {list(error.instance_path)}" for error in validator(kind).iter_errors(document)]
    assert not errors, f"{source} is not as {kind}{ENDING} says (docs/make_schemas.py): {'; '.join(errors[:5])}"


def parsed(text):
    """Return a JSON document; None for anything else."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError, TypeError):
        return None


@functools.cache
def validator(kind):
    """Return what validates documents of a kind, without further fields."""
    return jsonschema_rs.validator_for(closed(json.loads((FOLDER / f"{kind}{ENDING}").read_text(encoding="utf-8"))))


def closed(part):
    """Return a schema that forbids fields it does not describe."""
    if isinstance(part, list):
        return [closed(item) for item in part]
    if not isinstance(part, dict):
        return part
    found = {key: closed(value) for key, value in part.items()}
    return found | {"additionalProperties": False} if isinstance(part.get("required"), list) else found


def _new_files(folder):
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in _LEFT_OUT]
        for name in files:
            if name.endswith(".json") and (file := Path(place, name)).is_file():
                facts = file.stat()
                seen = str(file), facts.st_mtime_ns, facts.st_size
                if facts.st_size <= MOST_BYTES and seen not in _seen:
                    _seen.add(seen)
                    yield file

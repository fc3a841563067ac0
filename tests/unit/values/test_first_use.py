"""Names that are loaded on first use are those imported for type checkers, and no others."""

import pytest

from tensortriage.values.first_use import deferred_names, on_first_use

SOURCE = """
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensortriage.values.text import count as count
    from tensortriage.values.spec import (
        ValueSpec as ValueSpec,
    )
"""


def test_names_and_homes_are_read_from_the_source(tmp_path):
    file = tmp_path / "sdk.py"
    file.write_text(SOURCE)
    assert deferred_names(str(file)) == {"count": "tensortriage.values.text", "ValueSpec": "tensortriage.values.spec"}
    assert on_first_use("sdk", str(file))("count")(2, "op") == "2 ops"
    with pytest.raises(AttributeError, match="module 'sdk' has no attribute 'os2'"):
        on_first_use("sdk", str(file))("os2")

"""Formats that types alone do not say are written by whoever registers for them."""

import sys

import pytest

from tensortriage.errors import UsageError
from tensortriage.precision.search.number_formats import GROUP, NumberFormat, number_format
from tensortriage.values.dtype import Precision


@pytest.mark.parametrize("precision", [Precision.INT8, Precision.FP8E4M3])
def test_the_package_beside_the_core_writes_8_bits(precision):
    found = number_format(precision)
    assert isinstance(found, NumberFormat)
    assert type(found).__module__ == "tensortriage_quantize.search.number_format"


def test_what_nobody_writes_is_refused(monkeypatch):
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(UsageError) as caught:
        number_format(Precision.INT8)
    assert caught.value.slug == "precision-not-typed"
    assert "emulate:precision=int8" in caught.value.cure


def test_who_registers_is_told_the_format(tmp_path, monkeypatch):
    info = tmp_path / "mine-1.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text(f"[{GROUP}]\nfp8e5m2 = builtins:repr\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert number_format(Precision.FP8E5M2) == repr(Precision.FP8E5M2)

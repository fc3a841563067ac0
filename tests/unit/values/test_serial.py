import dataclasses
import enum
import json
import math
from collections.abc import Mapping
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tensortriage.errors import StoreError
from tensortriage.values import serial


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass(frozen=True, slots=True)
class Inner:
    name: str
    error: float


@dataclasses.dataclass(frozen=True, slots=True)
class Outer:
    inner: tuple[Inner, ...]
    colour: Colour
    path: Path
    counts: Mapping[str, int]
    maybe: float | None = None
    format: str = "tensortriage.outer/1"


EXAMPLE = Outer((Inner("a", 1.5), Inner("b", math.inf)), Colour.RED, Path("x/y"), {"n": 2**62})


def test_a_dataclass_survives_the_round_trip():
    assert serial.from_json(serial.to_json(EXAMPLE), Outer) == EXAMPLE


@pytest.mark.parametrize(("value", "word"), [(math.inf, "Infinity"), (-math.inf, "-Infinity"), (math.nan, "NaN")])
def test_non_finite_numbers_are_words_and_come_back(value, word):
    text = serial.to_json(Inner("x", value))
    assert json.loads(text)["error"] == word
    np.testing.assert_equal(serial.from_json(text, Inner).error, value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float32(0.5), 0.5),
        (np.int64(-3), -3),
        (np.uint64(2**64 - 1), 2**64 - 1),
        (np.bool_(True), True),
        (np.str_("s"), "s"),
        (np.float16("nan"), "NaN"),
        (ml_dtypes.bfloat16(2), 2.0),
        (np.complex64(1 + 2j), [1.0, 2.0]),
        ({3: frozenset([2, 1])}, {"3": [1, 2]}),
        ([Colour.RED, None, (Path("p"),)], ["red", None, ["p"]]),
    ],
)
def test_plain_values(value, expected):
    assert json.loads(serial.to_json(value)) == expected


def test_floats_keep_every_bit():
    values = [0.1, 5e-324, 1.7976931348623157e308, -0.0]
    assert [value.hex() for value in serial.from_json(serial.to_json(values), list[float])] == [v.hex() for v in values]


@pytest.mark.parametrize("value", [np.zeros(2), b"bytes", object()])
def test_what_has_no_json_form_is_refused(value):
    with pytest.raises(TypeError):
        serial.to_json({"x": value})


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('{"name": 1, "error": 0}', r"\$.name"),
        ('{"name": "x", "error": "many"}', r"\$.error"),
        ('{"name": "x"}', "error"),
        ("[]", "Expected"),
    ],
)
def test_bad_json_names_the_place(text, match):
    with pytest.raises(StoreError, match=match) as caught:
        serial.from_json(text, Inner, source="file.json")
    assert caught.value.slug == "json-invalid"
    assert "file.json" in str(caught.value)


@pytest.mark.parametrize("found", ["tensortriage.outer/2", "other", None, 3])
def test_another_format_is_refused(found):
    data = json.loads(serial.to_json(EXAMPLE)) | {"format": found}
    with pytest.raises(StoreError) as caught:
        serial.from_json(json.dumps(data), Outer)
    assert caught.value.slug == "format-unknown"


def test_a_file_is_replaced_in_one_step(tmp_path):
    path = tmp_path / "x.json"
    serial.dump(Inner("old", 1), path)
    with pytest.raises(TypeError):
        serial.dump(object(), path)
    assert serial.load(path, Inner) == Inner("old", 1.0)
    assert [file.name for file in tmp_path.iterdir()] == ["x.json"]


def test_a_file_gets_the_usual_permissions(tmp_path):
    (tmp_path / "plain").write_text("")
    serial.dump(1, tmp_path / "x.json")
    assert (tmp_path / "x.json").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_files_that_cannot_be_read_or_written_are_store_errors(tmp_path):
    with pytest.raises(StoreError) as caught:
        serial.load(tmp_path / "absent", Inner)
    assert caught.value.slug == "file-unreadable"
    with pytest.raises(StoreError) as caught:
        serial.dump(1, tmp_path / "absent" / "x.json")
    assert caught.value.slug == "file-unwritable"


def test_a_file_name_that_is_not_utf8_comes_back(tmp_path):
    """Python holds its odd bytes as lone surrogates (PEP 383)."""
    name = b"bad\xff.onnx".decode("utf-8", errors="surrogateescape")
    serial.dump({"path": name}, tmp_path / "x.json")
    assert serial.load(tmp_path / "x.json", dict[str, str]) == {"path": name}


@pytest.mark.parametrize("plain", [{}, [], {"a": [], "b": {}, "c": [1, 2.5e-300, {"é": "\n\u2028"}]}, "\udc80", 10**30])
def test_lines_to_read_are_those_of_the_standard_library(plain):
    assert serial.to_json(plain) == json.dumps(plain, indent=1, ensure_ascii=False)

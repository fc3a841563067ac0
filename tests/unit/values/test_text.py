import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensortriage.errors import UsageError
from tensortriage.values import text
from tensortriage.values.text import parse_bytes, size, some, whole_number


@given(st.text(), st.integers(0, 40))
def test_shorten_keeps_both_ends_and_the_width(raw: str, width: int) -> None:
    short = text.shorten(raw, width)
    assert len(short) <= max(width, 0)
    if len(raw) > width >= 3:
        assert short[0] == raw[0]
        assert short[-1] == raw[-1]
        assert "…" in short
    if len(raw) <= width:
        assert short == raw


@given(st.lists(st.text("ab (;.", min_size=1)).map("; ".join), st.integers(60, 90))
def test_abridged_sentences_fit_and_are_whole_where_they_can_be(raw: str, width: int) -> None:
    short = text.abridged(raw, width)
    assert short == raw if len(raw) <= width else len(short) <= width + 1


@pytest.mark.parametrize(
    ("raw", "short"),
    [
        ("Mul is wrong; " + "it is one of 40; " * 9 + "cure: take Div; it is off by 3 %",
         "Mul is wrong; it is one of 40; it is one of 40; cure: take Div (more in the report)"),
        ("Mul is off (" + "by 3 %; " * 9 + "in all); it is one of 4. Cure: take Div",
         "Mul is off (by 3 %; by … 3 %; by 3 %; in all); Cure: take Div (more in the report)"),
    ],
)  # fmt: skip
def test_abridged_sentences_keep_the_cause_and_the_cure(raw: str, short: str) -> None:
    assert text.abridged(raw, 95) == short


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "-"), (0.0, "0"), (math.nan, "NaN"), (math.inf, "Inf"), (-math.inf, "-Inf"), (81234.5, "81,234"),
        (1.2345e-5, "1.23e-05"), (0.0312, "0.0312"), (65504.0, "65,504"), (3.4e38, "3.4e+38"),
        (65519.4, "65,519"), (999999.7, "1 million"), (4231104.0, "4.23 million"), (-5e11, "-500 billion"),
    ],
)  # fmt: skip
def test_magnitude(value: float | None, shown: str) -> None:
    assert text.magnitude(value) == shown


def test_percent_is_never_certain_about_what_is_only_close() -> None:
    assert text.percent(1.0) == "100 %"
    assert text.percent(0.9999) == "> 99 %"
    assert text.percent(0.0001) == "0.01 %"
    assert text.percent(0.00001) == "< 0.01 %"
    assert text.percent(0.994) == "> 99 %"
    assert text.percent(2.5) == "250 %"
    assert text.percent(0.0) == "0 %"
    assert text.percent(None) == "-"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.04, "0.0 s"), (9.96, "10 s"), (59.6, "1 min 0 s"), (75.2, "1 min 15 s"), (7500, "2 h 5 min"), (math.nan, "-")],
)
def test_duration(seconds: float, shown: str) -> None:
    assert text.duration(seconds) == shown


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (None, "not measured"), (math.nan, "NaN or Inf"), (math.inf, "NaN or Inf"), (0.0, "0"), (3.14e-4, "3.1e-04"),
        (9.96e-4, "0.1 %"), (0.0071, "0.71 %"), (0.0301, "3 %"), (1.21, "121 %"), (42.0, "42x"),
        (4.2e6, "4.2 million x"),
    ],
)  # fmt: skip
def test_an_error_is_told_in_percent_where_that_is_read_at_a_glance(error: float | None, shown: str) -> None:
    assert text.error_size(error) == shown


def test_ratios_levels_counts_and_shapes() -> None:
    assert text.times(310.4) == "310x"
    assert text.times(9550.0) == "9,600x"
    assert text.times(122705.0) == "120,000x"
    assert text.times(4231104.0) == "4.2 million x"
    assert text.over_floor(None) == "more than the difference between healthy engines"
    assert text.times(math.inf) == "Inf"
    assert text.decibel(math.inf) == "exact"
    assert text.decibel(51.23) == "51.2"
    assert text.count(1, "check") == "1 check"
    assert text.count(12345, "node") == "12,345 nodes"
    assert text.shape((1, 128)) == "[1, 128]"
    assert text.shape(()) == "scalar"


@pytest.mark.parametrize(
    ("words", "expected"), [((), ""), (("a",), "a"), (("a", "b"), "a and b"), (("a", "b", "c"), "a, b and c")]
)
def test_a_list_in_a_sentence(words, expected):
    assert text.enumeration(words) == expected


@pytest.mark.parametrize(
    ("size", "expected"),
    [("", None), ("512", 512), ("1.5G", 3 << 29), ("300 MiB", 300 << 20), ("1e9", 10**9), ("2kB", 2048)],
)
def test_sizes_are_read_in_powers_of_1024(size, expected):
    assert parse_bytes(size) == expected


@pytest.mark.parametrize("size", ["0", "-1G", "many", "1.2.3M", "5X"])
def test_what_is_no_size_is_refused(size):
    with pytest.raises(UsageError) as found:
        parse_bytes(size)
    assert found.value.slug == "size-malformed"


def test_sizes_beyond_every_number_are_refused():
    with pytest.raises(UsageError):
        parse_bytes("1e999G")


@pytest.mark.parametrize(
    ("word", "number"),
    [
        ("0", 0), ("007", 7), ("9" * 18, 10**18 - 1), ("9" * 5000, None), ("²", None), ("٣", None), ("-1", None),
        ("", None),
    ],
)  # fmt: skip
def test_whole_numbers_are_ascii_digits_that_python_converts(word, number):
    assert whole_number(word) == number


@pytest.mark.parametrize(
    ("nbytes", "said"),
    [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (14_200, "14.2 kB"), (999_600, "1 MB"), (3_220_000_000, "3.22 GB"),
     (5 * 10**12, "5 TB")],
)  # fmt: skip
def test_sizes_have_three_digits(nbytes: int, said: str) -> None:
    assert size(nbytes) == said


def test_the_first_names_are_listed_and_the_others_counted() -> None:
    assert some(["a", "b", "c"], 3) == "a, b, c"
    assert some(["a", "b", "c"], 2) == "a, b and 1 more"
    assert some([], 2) == ""


FORMATTED = re.compile(r"\{[^{}]*:[^{}]*\.\d[eg%]\}|\{[^{}]*:[^{}]*%\}")
SCRIPTS_AND_LISTINGS = {
    "compare/alignment/tensor_fingerprint.py",  # text that is hashed
    "compare/nonfinite/element.py",  # operands of a formula, which can be typed
    "reduce/repro/repro_script.py",  # source text of a script
    "values/text.py",
}
SIGNED = re.compile(r":\+")
"""A difference keeps its sign, which `text` does not write."""


def test_no_other_module_writes_numbers_for_people():
    """Every other format of a float than decimals of a unit (seconds, dB) is one of `text`'s."""
    package = Path(text.__file__).parent.parent
    found = [
        f"{path.relative_to(package)}: {match[0]}"
        for path in sorted(package.rglob("*.py"))
        if str(path.relative_to(package)) not in SCRIPTS_AND_LISTINGS
        for match in FORMATTED.finditer(path.read_text("utf-8"))
        if not SIGNED.search(match[0])
    ]
    assert found == []

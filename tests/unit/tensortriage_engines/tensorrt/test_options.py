"""The options of the engine ``tensorrt``: what they are understood as, and which rungs they give."""

import pytest

from tensortriage.engines.options import read_options
from tensortriage.errors import UsageError
from tensortriage_engines.tensorrt.options import (
    AUTO,
    MIXED,
    OPTIONS,
    kept_words,
    ladder,
    parse_range,
    range_words,
    read_settings,
)


def settings(**options: str):
    return read_settings(read_options(options, OPTIONS))


def test_words_for_the_adapter():
    found = settings(precision="float16", opt_level="2", strict_nans="yes", tactic_sources="-CUDNN", workspace="512",
                     kept="a+b", fallback="bf16+fp8")  # fmt: skip
    assert (found.precision, found.kept) == ("fp16", ("a", "b"))
    assert found.words == {
        "opt_level": "2", "strict_nans": "true", "tactic_sources": "-CUDNN", "workspace": "512", "fallback": "bf16+fp8",
    }  # fmt: skip


@pytest.mark.parametrize(
    "options",
    [
        {"precision": "fp64"}, {"opt_level": "6"}, {"typing": "both"}, {"workspace": "0"}, {"fallback": "fp32"},
        {"load_engine": "no-such.engine"}, {"profile.x": "1x3:2"}, {"profile.x": "4:1:8"}, {"profile.x": "a"},
        {"observe": "all"}, {"nonsense": "1"},
    ],
)  # fmt: skip
def test_values_that_are_not_understood(options):
    with pytest.raises(UsageError):
        settings(**options)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1x3:4x3:8x3", ((1, 3), (4, 3), (8, 3))),
        ("2x3", ((2, 3), (2, 3), (2, 3))),
        ("1:8", ((1,), (8,), (8,))),
        ("-1x2:-1x4", ((-1, 2), (-1, 4), (-1, 4))),  # values of a shape
        ("", ((), (), ())),
    ],
)
def test_ranges(text, expected):
    assert parse_range("x", text) == expected


def test_every_option_is_explained():
    assert all(text and not text.endswith(".") for text in OPTIONS.values())


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({}, AUTO), ({"precision": "Auto"}, AUTO), ({"precision": "MIXED"}, MIXED), ({"precision": "fp8"}, "fp8"),
        ({"precision": "half"}, "fp16"), ({"precision": "tf32"}, "tf32"),
    ],
)  # fmt: skip
def test_words_of_precisions(options, word):
    assert settings(**options).precision == word


def test_files_are_found_and_told_by_their_whole_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("engine", "cache", "a.so", "b.so"):
        (tmp_path / name).touch()
    found = settings(load_engine="engine", plugins="a.so+b.so", timing_cache="cache", save_tactics="tactics")
    assert found.words["load_engine"] == str(tmp_path / "engine")
    assert found.words["plugins"] == f"{tmp_path / 'a.so'}+{tmp_path / 'b.so'}"
    assert found.words["record_tactics"] == "true"
    assert found.save == {"save_tactics": tmp_path / "tactics", "timing_cache": tmp_path / "cache"}
    with pytest.raises(UsageError) as caught:
        settings(plugins="a.so+absent.so")
    assert caught.value.slug == "engine-option-file"


@pytest.mark.parametrize(
    ("options", "read", "written"),
    [
        ({"timing_cache": "there"}, "there", True),
        ({"timing_cache": "absent"}, "", True),
        ({"load_timing_cache": "there"}, "there", False),
        ({"load_timing_cache": "there", "timing_cache": "absent"}, "there", True),
    ],
)
def test_a_timing_cache_is_read_where_it_exists_and_written_where_it_may(tmp_path, monkeypatch, options, read, written):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").touch()
    found = settings(**options)
    assert found.words["timing_cache"] == (str(tmp_path / read) if read else "")
    assert ("timing_cache" in found.save) is written


def test_without_options_nothing_is_asked_for():
    found = settings()
    assert (found.precision, found.kept, found.typing, found.ranges, found.save, found.words) == (
        AUTO,
        (),
        "",
        {},
        {},
        {},
    )
    assert settings(strict_nans="false").words == {}
    assert settings(typing="strong").typing == "strong"
    assert settings(typing="strong", constraints="prefer").words == {"constraints": "prefer"}


@pytest.mark.parametrize("text", ["engine_capability", "engine_capability:", "nonsense:1"])
def test_settings_of_the_builder_have_a_known_name_and_a_value(text):
    assert settings(builder_settings="Engine_Capability:SAFETY").words == {
        "builder_settings": "Engine_Capability:SAFETY"
    }
    with pytest.raises(UsageError):
        settings(builder_settings=text)


def test_ranges_are_written_as_they_are_read():
    found = settings(**{"profile.x": "1x3:4x3:8x3", "profile.s": "7"}).ranges
    assert range_words(found) == {"profile.x": "1x3:4x3:8x3", "profile.s": "7:7:7"}


def test_kept_nodes_travel_with_the_makers_of_all_values():
    assert kept_words(["a"], {"v": "a"}) == '{"nodes": ["a"], "values": {"v": "a"}}'


@pytest.mark.parametrize(
    ("options", "levels", "expected"),
    [
        ({"load_engine": "e", "opt_level": "3"}, True, ["as given"]),
        ({"precision": " Mixed"}, True, ["opt_level=0", "as given"]),
        ({"precision": "mixed"}, False, ["as given"]),
        ({"precision": "fp16"}, True, ["precision=fp32, opt_level=0", "precision=fp32", "opt_level=0", "as given"]),
        ({"precision": "fp16"}, False, ["precision=fp32", "as given"]),
        ({"precision": "fp32"}, True, ["precision=fp32, opt_level=0", "as given"]),
        ({"precision": "fp32", "opt_level": "0"}, True, ["as given"]),
    ],
)
def test_rungs_that_say_the_same_are_one(options, levels, expected):
    rungs = ladder(options, levels=levels)
    assert [words for words, _ in rungs] == expected
    assert rungs[-1][1] == options

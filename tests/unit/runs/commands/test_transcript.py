import re

import pytest

from tensortriage.runs.commands import transcript
from tensortriage.runs.commands.transcript import Transcript


def printed(chunks, *patterns):
    taken = Transcript([re.compile(pattern) for pattern in patterns])
    for chunk in chunks:
        taken.take(chunk)
    return taken.finish()


def test_short_output_is_kept_whole():
    found = printed([b"one\n", b"two\n"])
    assert (found.text, found.nbytes, found.last_words()) == ("one\ntwo\n", 8, "two")


def test_long_output_keeps_beginning_and_end():
    found = printed([b"first\n", *[b"x" * 10_000] * 100, b"\nlast\n"])
    assert found.head.startswith("first\n")
    assert found.tail.endswith("\nlast\n")
    assert found.nbytes == 1_000_012
    assert len(found.text) < 130_000
    assert "1,000,012 bytes in all" in found.text


def test_output_just_beyond_the_head_is_not_lost():
    text = "".join(f"{number:07d}\n" for number in range(10_000))
    found = printed([text.encode()])
    assert found.head + found.tail == text


def test_a_character_split_between_chunks_is_read():
    word = "größer".encode()
    assert printed([word[:3], word[3:]]).text == "größer"


def test_bytes_that_are_no_text_do_no_harm():
    assert printed([b"\xff\xfe ok"]).text.endswith(" ok")


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_pattern_across_chunks_is_found(cut):
    text = b"before FAILED after"
    assert printed([text[:cut], text[cut:]], "FAILED", "passed").matched == ("FAILED",)


def test_a_pattern_in_the_middle_of_long_output_is_found():
    chunks = [b"y" * 50_000] * 20 + [b"mismatch at 3"] + [b"y" * 50_000] * 20
    assert printed(chunks, r"mismatch at \d").matched == (r"mismatch at \d",)


def test_the_beginning_is_not_found_later(monkeypatch):
    monkeypatch.setattr(transcript, "OVERLAP_CHARACTERS", 10)
    assert printed([b"0123456789abcdef", b"0123456789FAIL"], "^FAIL", "^0123").matched == ("^0123",)

from tensortriage.diagnose.state.verdict import VerdictKind
from tensortriage.report.verdict_words import KIND_WORDS, Tone


def test_every_verdict_has_words() -> None:
    assert set(KIND_WORDS) == set(VerdictKind)
    assert all(words.title and words.meaning.endswith(".") for words in KIND_WORDS.values())


def test_tone_agrees_with_the_exit_code() -> None:
    loud = {0: {Tone.GOOD, Tone.NOTICE}, 1: {Tone.PROBLEM}, 4: {Tone.UNSURE}}
    assert all(words.tone in loud[kind.exit_code] for kind, words in KIND_WORDS.items())


def test_tones_differ_without_colour() -> None:
    assert len({tone.sign for tone in Tone}) == len({tone.label for tone in Tone}) == len(Tone)

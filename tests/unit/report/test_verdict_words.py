import pytest

from tensortriage.diagnose.state.verdict import Culprit, VerdictKind
from tensortriage.model.provenance.origin import NodeOrigin
from tensortriage.report.verdict_words import KIND_WORDS, Tone, headline


def test_every_verdict_has_words() -> None:
    assert set(KIND_WORDS) == set(VerdictKind)
    assert all(words.title and words.meaning.endswith(".") for words in KIND_WORDS.values())


def test_tone_agrees_with_the_exit_code() -> None:
    loud = {0: {Tone.GOOD, Tone.NOTICE}, 1: {Tone.PROBLEM}, 4: {Tone.UNSURE}}
    assert all(words.tone in loud[kind.exit_code] for kind, words in KIND_WORDS.items())


def test_tones_differ_without_colour() -> None:
    assert len({tone.sign for tone in Tone}) == len({tone.label for tone in Tone}) == len(Tone)


GELU = NodeOrigin("blocks.2.mlp.1", "GELU")


@pytest.mark.parametrize(
    ("kind", "culprits", "expected"),
    [
        (
            "local-fault",
            [Culprit("node_gelu_2", "Gelu", "v", 0.03, effect="returns 1.03 times the right value", origin=GELU)],
            "Gelu blocks.2.mlp.1 (node_gelu_2) returns 1.03 times the right value",
        ),
        ("local-fault", [Culprit("gelu", "Gelu", "v", 0.03)], "Gelu gelu is off by 3 %"),
        (
            "fusion-fault",
            [Culprit("gelu", "Gelu", "v"), Culprit("add", "Add", "w"), Culprit("add", "Add", "x")],
            "Gelu gelu goes wrong only when fused (and 1 more op)",
        ),
        ("model-changed", [Culprit("norm", "Add", "v")], "The two models differ: Add norm"),
        ("engine-crash", [], "The engine crashes"),
        ("rounding", [Culprit("exp", "Exp", "v")], "Rounding explains the error"),
    ],
)
def test_a_headline_names_op_module_and_effect(kind, culprits, expected) -> None:
    assert headline(VerdictKind(kind), culprits) == expected

"""Questions of other packages: each in the place that it names, asked like our own; what cannot be asked is told."""

import numpy as np
import pytest

from tensortriage.diagnose import ladder
from tensortriage.diagnose.climb import climb
from tensortriage.diagnose.rungs.premises.training_mode import QUESTION as FIRST
from tensortriage.diagnose.state.verdict import VerdictKind
from tensortriage.errors import EngineMissing

MODEL = "g (float[2] x) => (float[2] y) { y = Neg(x) }"
SOURCE = f"""
from tensortriage.diagnose.sdk import OBSERVED, Conclusion, VerdictKind, rung

@rung("is it early?", cost="nothing", after={FIRST!r})
def early(inv, evidence):
    inv.record.answered("is it early?", "yes")

@rung("is it next?", cost="nothing", after="is it early?", ends=(VerdictKind.COMPARISON_UNSOUND,))
def following(inv, evidence):
    return Conclusion(VerdictKind.COMPARISON_UNSOUND, OBSERVED, "nobody wants to know")

@rung("is it nowhere?", cost="nothing", after="what nobody asks?")
def nowhere(inv, evidence):
    pass

number = 3
"""


@pytest.fixture
def register(tmp_path, monkeypatch):
    """Return a function that registers rungs, as an installed package does."""
    (tmp_path / "foreign_rungs.py").write_text(SOURCE)
    folder = tmp_path / "foreign-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: foreign\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(tmp_path)

    def registered(*names):
        lines = "".join(f"{name} = foreign_rungs:{name}\n" for name in names)
        (folder / "entry_points.txt").write_text(f"[{ladder.GROUP}]\n{lines}")
        ladder._by_place.cache_clear()

    yield registered
    ladder._by_place.cache_clear()


def test_each_comes_after_the_question_that_it_names(register):
    register("following", "early")
    titles = [rung.title for rung in ladder.ladder()]
    place = titles.index(FIRST)
    assert titles[place + 1 : place + 3] == ["is it early?", "is it next?"]
    assert (
        len(titles) == len(ladder.OWN) + 26
    )  # of builds, the engine itself, network, inputs, files, meanings, quantizers


def test_it_is_asked_and_its_verdict_ends_the_climb(register, investigate):
    register("early", "following")
    end = climb(investigate(MODEL, {"x": np.float32([1.0, 2.0])}))
    assert (end.conclusion.kind, end.conclusion.summary) == (VerdictKind.COMPARISON_UNSOUND, "nobody wants to know")
    assert [step.question for step in end.investigation.record.steps] == ["is it early?"]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nowhere", "it comes after 'what nobody asks?', which is not a question of the ladder"),
        ("number", "foreign_rungs:number is not a rung"),
        ("missing", "AttributeError: module 'foreign_rungs' has no attribute 'missing'"),
    ],
)
def test_what_cannot_be_asked_is_told(register, name, why):
    register(name)
    with pytest.raises(EngineMissing) as caught:
        ladder.ladder()
    assert caught.value.slug == "rung-broken"
    assert caught.value.message == f"the rung '{name}' of the package foreign cannot be loaded: {why}"

"""Why some builds fail: an overflow, what only they run, an op that is wrong alone in some, or what is not known."""

import numpy as np
import pytest

from diagnosing import CHAIN_FEED, softmax_chain
from tensortriage.diagnose.measurements.outputs import deployed
from tensortriage.diagnose.rungs.variation.intermittent_cause import cause_of
from tensortriage.diagnose.rungs.variation.rebuilds import Build
from tensortriage.diagnose.state.confidence import BUILDS_UNTOLD
from tensortriage.engines.spec import EngineSpec

BAD = [True, True, True, False, False, False]
PLAIN = "onnxruntime:optimization=none"


def builds_with(*regions):
    """Return six builds; the failing ones run the regions as ``bad``, the others as ``good``."""
    ran = [tuple((region, "bad" if failed else "good") for region in regions) for failed in BAD]
    return [Build(None, None, features) for features in ran]


@pytest.fixture
def asked(investigate, compared):
    def ask(target=PLAIN):
        inv = investigate(softmax_chain(), CHAIN_FEED, target=target)
        return inv, compared(inv)

    return ask


def test_a_single_op_that_goes_with_failure_is_to_blame_without_another_build(asked):
    inv, evidence = asked()
    before = inv.lab.tally.builds
    cause = cause_of(inv, evidence, builds_with("softmax"), BAD)
    (culprit,) = cause.culprits
    assert (culprit.node, culprit.value) == ("softmax", "s")
    assert "3 failing and 0 passing builds run it as bad" in culprit.reason
    assert cause.words == "; the failing ones run 'softmax' as bad"
    assert 0.5 < cause.confidence < 1.0
    assert inv.lab.tally.builds == before


def test_several_single_ops_that_cannot_be_told_apart_are_all_named(asked):
    cause = cause_of(*asked(), builds_with("tanh", "softmax"), BAD)
    assert {culprit.node for culprit in cause.culprits} == {"tanh", "softmax"}
    single = cause_of(*asked(), builds_with("softmax"), BAD)
    assert cause.confidence < single.confidence


def test_of_a_small_region_the_last_op_stands_for_it_where_no_op_is_wrong_alone(asked, last_step):
    inv, evidence = asked()
    cause = cause_of(inv, evidence, builds_with("tanh, softmax"), BAD)
    assert [culprit.node for culprit in cause.culprits] == ["softmax"]
    assert last_step(inv).answer.startswith("none that is wrong alone")


def test_an_op_that_is_wrong_alone_is_surer_than_its_region(asked, last_step):
    inv, evidence = asked("faulty:kind=scale,node=tanh,amount=1.5")
    cause = cause_of(inv, evidence, builds_with("tanh, softmax"), BAD)
    assert [culprit.node for culprit in cause.culprits] == ["tanh"]
    assert cause.culprits[0].local_error == pytest.approx(0.5, rel=1e-4)  # what was planted
    assert cause.culprits[0].floor_ratio > 1000
    assert "run 'tanh, softmax' as bad" in cause.words
    assert last_step(inv).evidence["builds"] == 1


def test_another_shape_is_the_worst_that_an_op_can_do(asked, investigate):
    _, evidence = asked()
    inv = investigate(softmax_chain(), CHAIN_FEED, target="faulty:kind=shape,node=tanh")
    cause = cause_of(inv, evidence, builds_with(), BAD)
    (culprit,) = cause.culprits
    assert (culprit.node, culprit.local_error, culprit.floor_ratio) == ("tanh", None, np.inf)


@pytest.mark.parametrize(
    ("regions", "words"),
    [
        (["scale, tanh, softmax, last, another"], "; the failing ones run 'scale ... another' as bad"),
        (["scale, tanh, softmax, last, a, b", "c", "d", "e"], "; they differ in 4 regions"),
        (["unknown"], "; they differ in 1 region"),
        ([], "; the engine does not report their kernels"),
    ],
)
def test_what_cannot_be_told_apart_or_is_not_told_is_said_to_be(asked, regions, words):
    cause = cause_of(*asked(), builds_with(*regions), BAD)
    assert cause.words == words
    if "run 'scale" not in words:
        assert (cause.culprits, cause.confidence) == ((), BUILDS_UNTOLD)


def test_where_single_ops_cannot_be_run_the_region_is_all_that_is_known(asked, investigate, last_step):
    _, evidence = asked()
    broken = EngineSpec.parse("faulty:kind=build-failure,node=tanh")
    inv = investigate(softmax_chain(), CHAIN_FEED, reference=broken)
    assert cause_of(inv, evidence, builds_with(), BAD).culprits == ()
    assert last_step(inv).answer.startswith("unknown: ")


def test_bad_builds_that_overflow_are_told_by_the_op_that_does(investigate, compared):
    """The square of 300 is beyond fp16, which ends at 65504; its root is not."""
    model = "g (float[4] x) => (float[4] y) { [square] a = Mul(x, x)  [root] y = Sqrt(a) }"
    inv = investigate(model, {"x": np.float32([300, 1, 2, 3])}, target="emulate:precision=fp16")
    evidence = compared(inv)
    failing = Build(deployed(inv, evidence.feed), 0.0, (("square", "half"),))
    passing = Build(None, None, (("square", "full"),))
    cause = cause_of(inv, evidence, [failing, passing], [True, False])
    assert cause.words.startswith("; the failing ones overflow: ")
    assert cause.words.endswith("; they run 'square' as half")
    assert cause.culprits[0].node == "square"
    assert cause.findings
    untold = cause_of(inv, evidence, [passing, passing], [True, False])  # no build has figures
    assert "overflow" not in untold.words

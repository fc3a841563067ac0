import math

import pytest

from tensortriage.reduce.failure import Failure, FailureKind, essence, verdict_on
from tensortriage.search.problem import CandidateOutcome

WHOLE = Failure(FailureKind.WRONG, "y", 0.5, "y", 0.5, "a", influences={"a": {"y": 0.5}})


def wrong(influence, *, sample="a", output="y"):
    return Failure(FailureKind.WRONG, "v", 0.2, output, influence, sample)


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (None, CandidateOutcome.PASS),
        (wrong(0.5), CandidateOutcome.SAME),
        (wrong(0.05), CandidateOutcome.SAME),  # exactly a tenth
        (wrong(0.049), CandidateOutcome.OTHER),
        (wrong(0.5, sample="b"), CandidateOutcome.OTHER),
        (wrong(0.5, output="z"), CandidateOutcome.OTHER),
        (Failure(FailureKind.NON_FINITE, "v", math.inf), CandidateOutcome.OTHER),
        (Failure(FailureKind.CRASH, message="died"), CandidateOutcome.OTHER),
        (Failure(FailureKind.BUILD_FAILED, message="cannot"), CandidateOutcome.UNRESOLVED),
    ],
)
def test_what_counts_as_the_same_failure(failure, expected):
    assert verdict_on(failure, WHOLE).outcome is expected


def test_every_failure_will_do_while_the_premise_is_asked():
    assert verdict_on(Failure(FailureKind.CRASH), None).same


def test_refusals_are_told_apart_by_what_they_say():
    def refused(text):
        return Failure(FailureKind.BUILD_FAILED, message=text)

    whole = refused("no kernel for 'conv_7' of 64 channels")
    assert verdict_on(refused("no kernel for 'conv_9' of 12 channels"), whole).outcome is CandidateOutcome.SAME
    assert verdict_on(refused("shape of 'conv_9' is unknown"), whole).outcome is CandidateOutcome.OTHER


def test_essence_leaves_out_names_paths_and_numbers():
    assert essence('\nnode "a" at /tmp/m.onnx: 0x1f, 12 bytes\nmore') == essence('node "b" at /x/y: 0x2, 3 bytes')

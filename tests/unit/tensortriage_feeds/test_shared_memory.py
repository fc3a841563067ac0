"""Which outputs hold another one's numbers, and that equal numbers of an op at fault are not taken for that."""

import dataclasses

import numpy as np
import pytest

from tensortriage_feeds.shared_memory import SHARED, overwritten

RNG = np.random.default_rng(5)
RIGHT = {name: RNG.standard_normal(shape).astype(np.float32) for name, shape in
         {"boxes": (4, 6), "scores": (4, 6), "classes": (3, 4)}.items()}  # fmt: skip


@dataclasses.dataclass
class Lab:
    """Answers with the right outputs, or with those of a program, in which some lie in one memory."""

    made: dict
    in_one_memory: tuple

    def outputs(self, engine, model, feed, *, layout="", **_):
        if engine == "reference":
            return RIGHT
        inverted = self.in_one_memory if layout == SHARED else ()
        return {name: -array if name in inverted else array for name, array in self.made.items()}


def told(made, in_one_memory):
    lab = Lab({**RIGHT, **made}, in_one_memory)
    return [(each.output, each.by) for each in overwritten(lab, None, None, "reference", "target")]


SMALL = RIGHT["boxes"].copy()
SMALL.reshape(-1)[:12] = RIGHT["classes"].reshape(-1)
BEHIND = RIGHT["boxes"].copy()
BEHIND.reshape(-1)[8:20] = RIGHT["classes"].reshape(-1)


@pytest.mark.parametrize(
    ("made", "memory", "found"),
    [
        ({"boxes": RIGHT["scores"]}, ("boxes", "scores"), [("boxes", "scores")]),
        ({"boxes": SMALL}, ("boxes", "classes"), [("boxes", "classes")]),
        ({"boxes": BEHIND}, ("boxes", "classes"), [("boxes", "classes")]),
        ({"boxes": RIGHT["scores"]}, (), []),
        ({}, ("boxes", "scores"), []),
        ({"boxes": RIGHT["boxes"] * 2}, ("boxes", "scores"), []),
        ({"boxes": np.zeros_like(RIGHT["boxes"]), "scores": np.zeros_like(RIGHT["scores"])}, ("boxes", "scores"), []),
    ],
    ids=["whole", "its beginning", "its middle", "another memory", "right", "an op at fault", "zeros"],
)
def test_an_output_is_told_that_holds_the_numbers_of_one_in_its_memory(made, memory, found):
    assert told(made, memory) == found

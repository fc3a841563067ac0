"""Which weights of a network a file has, whatever it calls them. Errors are worked out from the numbers planted."""

import numpy as np
import pytest
from onnx import numpy_helper

from models import of_message, proto
from tensortriage_torch.premises import read_premises
from tensortriage_torch.rungs.network_weights import held_weights
from tensortriage_torch.worker.premises import quantiles, sample

RNG = np.random.default_rng(0)
LINEAR = RNG.normal(size=(40, 24)).astype(np.float32)
FILTERS = RNG.normal(size=(12, 6, 3, 3)).astype(np.float32)


def network(**weights):
    arrays = {f"sample/{name}.weight": sample(array) for name, array in weights.items()}
    arrays |= {f"quantiles/{name}.weight": quantiles(array) for name, array in weights.items()}
    shapes = {f"{name}.weight": array.shape for name, array in weights.items()}
    return read_premises({"again": {}, "calls": {}, "paths": list(weights), "shapes": shapes}, arrays)


def held(weights, **file):
    message = proto("g (float[2] x) => (float[2] y) { y = Neg(x) }")
    message.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in file.items())
    return held_weights(of_message(message).graph, network(**weights))


@pytest.mark.parametrize(
    ("own", "file"),
    [
        (LINEAR, LINEAR),
        (LINEAR, np.ascontiguousarray(LINEAR.T)),
        (LINEAR, LINEAR.astype(np.float16)),
        (LINEAR, LINEAR.reshape(4, 10, 24)[[0, 3, 1, 2]].reshape(1, 40, 24)),  # gates in another order, as of an LSTM
        (FILTERS, FILTERS * np.linspace(0.5, 2, 12, dtype=np.float32)[:, None, None, None]),
        (FILTERS, FILTERS * np.linspace(0.5, 2, 6, dtype=np.float32)[:, None, None]),
    ],
    ids=["as-it-is", "transposed", "half", "gates", "norm", "norm-of-a-transposed"],
)
def test_weights_are_the_same_however_an_exporter_wrote_them(own, file):
    found = held({"part": own}, renamed=file)
    assert (found.same, dict(found.other), found.missing) == ({"part"}, {}, frozenset())


def test_other_numbers_are_told_by_how_far_they_are():
    found = held({"part": LINEAR, "rest": FILTERS}, part=LINEAR * np.float32(1.25), rest=FILTERS)
    assert (found.same, found.other) == ({"rest"}, {"part": pytest.approx(0.25)})


def test_a_name_counts_more_than_what_is_nearest():
    found = held({"part": LINEAR}, **{"part.weight": -LINEAR, "other": LINEAR})
    assert found.other == {"part": pytest.approx(2.0)}


def test_a_constant_that_happens_to_be_of_the_size_tells_nothing():
    found = held({"part": LINEAR}, other=RNG.normal(size=(10, 96)).astype(np.float32))
    assert (found.same, dict(found.other), found.missing) == (frozenset(), {}, frozenset())


def test_what_the_file_has_nothing_for_is_missing_and_of_whole_numbers_nothing_is_said():
    found = held({"part": LINEAR, "rest": FILTERS}, other=(LINEAR * 10).astype(np.int8))
    assert (found.same, dict(found.other), found.missing) == (frozenset(), {}, {"rest"})

"""Which ways explain numbers. The other side's are those of the same network, written otherwise by hand."""

import numpy as np
import pytest

from meant_otherwise import model, run
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage_meanings.rewrite import Rewriter
from tensortriage_meanings.rung import TABLE
from tensortriage_meanings.search import Unexplained, bits_of, explained, sites_of
from tensortriage_meanings.table.places import PLACES
from tensortriage_meanings.table.signatures import SIGNATURES

OPS = {"LeakyRelu", "Softmax", "MatMul"}
ROWS = [row for row in TABLE if OPS & set(row.ops)]
RNG = np.random.default_rng(1)
X = RNG.standard_normal((4, 8)).astype(np.float32)
WEIGHTS = {name: RNG.standard_normal((8, 8)) for name in ("u", "v", "w")}
NET = """g (float[4,8] x) => (float[4,8] y)
<float[8,8] u = {U}, float[8,8] v = {V}, float[8,8] w = {W}> {
  [a] a = MatMul(x, u) [b] b = LeakyRelu<alpha=ONE>(a) [c] c = MatMul(b, v) [d] d = LeakyRelu<alpha=TWO>(c)
  [e] e = MatMul(d, w) [y] y = Softmax<axis=AXIS>(e)
}"""


def net(one=0.01, two=0.01, axis=-1):
    text = NET.replace("ONE", str(one)).replace("TWO", str(two)).replace("AXIS", str(axis))
    for name, array in WEIGHTS.items():
        text = text.replace(f"{{{name.upper()}}}", "{" + ", ".join(f"{each:.6f}" for each in array.ravel()) + "}")
    return model(text)


def of(theirs, limit=1e-5):
    """Return what a search says of the network with these outputs, judged by one limit."""
    subject = Unexplained(
        net(), lambda one: {"y": run(one, x=X)}, {"y": theirs},
        lambda _, made: {"y": limit} if np.abs(made["y"] - theirs).max() <= limit else None,
    )  # fmt: skip
    return explained(subject, ROWS)


def told(found):
    return {name: way.words for name, way in found.ways.items()}


def test_all_ops_of_a_kind_are_tried_at_once():
    found = of(run(net(0.2, 0.2), x=X))
    assert told(found) == dict.fromkeys("bd", "alpha were 0.2, not 0.01")
    assert found.equals == ()


def test_one_op_of_a_kind_is_told_alone():
    assert told(of(run(net(two=0.3), x=X))) == {"d": "alpha were 0.3, not 0.01"}


def test_two_differences_are_told_together():
    assert told(of(run(net(0.2, 0.2, axis=0), x=X))) == {
        "b": "alpha were 0.2, not 0.01", "d": "alpha were 0.2, not 0.01", "y": "axis were 0, not 1",
    }  # fmt: skip


@pytest.mark.parametrize(
    "theirs",
    [run(net(), x=X), run(net(0.137, 0.137), x=X), run(net(), x=X) * np.float32(1.05), run(net(), x=X[::-1])],
    ids=["the same", "a number that nobody has", "scaled", "other rows"],
)
def test_nothing_is_said_of_what_no_way_makes(theirs):
    assert of(theirs) is None


def test_what_chance_makes_says_nothing():
    assert of(run(net(two=0.3), x=X), limit=0.4) is None  # within such a limit many networks are


def test_bits_count_elements_that_were_off():
    before, after = np.array([1.0, 2.0, 3.0]), np.array([1.0, 4.0, 5.0])
    assert bits_of({"y": before}, {"y": before}, {"y": 1e-6}) == 0.0
    two = bits_of({"y": before}, {"y": after}, {"y": 1e-3})  # off by 0.76 of the RMS before: two times log2(760)
    assert two == pytest.approx(2 * np.log2(np.sqrt(8 / 14) / 1e-3), rel=1e-6)
    labels = np.array([0, 7, 3, 3])
    assert bits_of({"y": labels}, {"y": labels[::-1]}, {"y": 0.0}) == pytest.approx(4 * 3.0)  # of eight, four differ


RESIZED = """g (float[1,1,6,6] x) => (float[1,1,9,9] y) <float[4] scales = {1, 1, 1.5, 1.5}> {
  [op] y = Resize<mode="linear"HOW>(x, scales) }"""
REGIONS = """g (float[1,1,6,6] x) => (float[1,1,2,2] y) <float[1,4] box = {1, 1, 3, 3}, int64[1] at = {0}> {
  [op] y = RoiAlign<output_height=2, output_width=2, sampling_ratio=1HOW>(x, box, at) }"""


@pytest.mark.parametrize(
    ("text", "opset", "words"),
    [
        (RESIZED, 10, "were half_pixel, not asymmetric"),
        (REGIONS, 11, "were half_pixel, not output_half_pixel"),
    ],
)
def test_an_attribute_that_an_older_opset_lacks_is_tried_on_the_model_raised(text, opset, words):
    """The other side's numbers are those of the same op in the first opset that has the attribute."""
    how = ', coordinate_transformation_mode="half_pixel"'
    x = RNG.standard_normal((1, 1, 6, 6)).astype(np.float32)
    theirs = run(model(text.replace("HOW", how).replace("(x, scales)", "(x, , scales)")), x=x)
    subject = Unexplained(
        model(text.replace("HOW", ""), opset=opset), lambda one: {"y": run(one, x=x)}, {"y": theirs},
        lambda _, made: {"y": 1e-5} if np.abs(made["y"] - theirs).max() <= 1e-5 else None,
    )  # fmt: skip
    assert words in told(explained(subject, TABLE))["op"]


def test_what_leaves_out_operators_explains_alone_only():
    """Without both activations nothing is said, for many networks are that near: each alone would be."""
    text = "g (float[4,8] x) => (float[4,8] y) { [a] a = Tanh(x) [b] b = Exp(a) [c] y = Sin(b) }"
    one = model(text)

    def asked(theirs):
        subject = Unexplained(
            one, lambda each: {"y": run(each, x=X)}, {"y": theirs},
            lambda _, made: {"y": 1e-5} if np.abs(made["y"] - theirs).max() <= 1e-5 else None,
        )  # fmt: skip
        return explained(subject, SIGNATURES)

    assert told(asked(np.sin(np.exp(X)))) == {"a": "it were left out"}
    assert asked(np.sin(X)) is None


def test_sizes_that_a_file_leaves_open_are_those_that_are_fed():
    one = model("g (float[n,m] x) => (float[n,m] y) <float[8] c = {1,2,3,4,5,6,7,8}> { [a] y = Mul(x, c) }")
    square = RNG.standard_normal((8, 8)).astype(np.float32)
    theirs = square * np.arange(1, 9, dtype=np.float32).reshape(8, 1)
    subject = Unexplained(
        one, lambda each: {"y": run(each, x=square)}, {"y": theirs},
        lambda _, made: {"y": 1e-5} if np.abs(made["y"] - theirs).max() <= 1e-5 else None, {"x": square},
    )  # fmt: skip
    assert told(explained(subject, PLACES)) == {"a": "its input B [8] lay along axis 0, not along axis 1"}


def test_what_would_leave_no_elements_is_not_run():
    """ONNX Runtime 1.31 ends its process (SIGFPE) at an Einsum over no elements."""
    one = model(
        "g (float[2,3,6] x) => (float[2,3,3] y) <int64[1] a = {0}, int64[1] b = {6}, int64[1] axis = {2}> "
        '{ [s] s = Slice(x, a, b, axis) [e] y = Einsum<equation="bij,bkj->bik">(s, s) }'
    )
    x = RNG.standard_normal((2, 3, 6)).astype(np.float32)

    def asked(each):
        try:
            return {"y": run(each, x=x)}
        except Exception as error:
            raise ValueError(error) from error

    ways = (each["s"] for each in sites_of(Rewriter(one), SIGNATURES) if "s" in each)
    exchanged = next(way for way in ways if way.inputs == {1: 2, 2: 1})
    assert 0 in value_specs(Rewriter(one).rewritten({"s": exchanged}), refine=True)["s"].shape
    subject = Unexplained(one, asked, {"y": run(one, x=x) + np.float32(1)}, lambda *_: None)
    assert explained(subject, SIGNATURES) is None

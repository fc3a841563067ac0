import numpy as np
import pytest

from tensortriage.engines.float64.kernels import Call, kernel_for


def resize(x, *, version=19, scales=None, sizes=None, op_type="Resize", **attributes):
    x = np.asarray(x, np.float64)
    if op_type == "Upsample" or version < 11:
        inputs = (x, np.array(scales))
    else:
        inputs = (x, None, None if scales is None else np.array(scales), None if sizes is None else np.array(sizes))
    return kernel_for(op_type)(Call(op_type, version, inputs, attributes))


def test_linear_interpolation_of_a_ramp_is_the_ramp():
    # On x[i] = i linear interpolation returns the coordinate itself, clipped to the ends.
    ramp = np.arange(4.0)
    half_pixel = resize(ramp, sizes=[8], mode="linear")
    assert half_pixel.tolist() == [0, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3]
    corners = resize(ramp, sizes=[7], mode="linear", coordinate_transformation_mode="align_corners")
    assert corners.tolist() == [0, 0.5, 1, 1.5, 2, 2.5, 3]
    plain = resize(ramp, scales=[2.0], mode="linear", coordinate_transformation_mode="asymmetric")
    assert plain.tolist() == [0, 0.5, 1, 1.5, 2, 2.5, 3, 3]


def test_cubic_interpolation_reproduces_a_parabola_inside():
    # Keys' kernel with a = -0.5 is exact for polynomials up to degree 2.
    parabola = np.arange(8.0) ** 2
    found = resize(parabola, scales=[2.0], mode="cubic", cubic_coeff_a=-0.5)
    places = (np.arange(16) + 0.5) / 2 - 0.5
    assert found[4:-4] == pytest.approx(places[4:-4] ** 2, rel=1e-14)


def test_antialiasing_averages():
    # Half size with the triangle filter stretched to twice its width: weights 1/8, 3/8, 3/8, 1/8.
    x = np.array([0, 0, 8, 0, 0, 0, 0, 0.0])
    assert resize(x, scales=[0.5], mode="linear", antialias=1).tolist() == [1, 3, 0, 0]


def test_axes_are_resized_one_by_one():
    x = np.arange(6.0).reshape(2, 3)
    found = resize(x, sizes=[4], axes=(0,), mode="nearest", coordinate_transformation_mode="asymmetric")
    assert found.tolist() == [[0, 1, 2], [0, 1, 2], [3, 4, 5], [3, 4, 5]]


@pytest.mark.parametrize(("policy", "shape"), [("not_larger", (4, 2)), ("not_smaller", (8, 4))])
def test_aspect_ratio(policy, shape):
    assert resize(np.zeros((6, 3)), sizes=[8, 2], keep_aspect_ratio_policy=policy).shape == shape


@pytest.mark.parametrize(
    ("rounding", "expected"),
    [
        ("floor", [0, 0, 1, 1]),
        ("ceil", [0, 1, 1, 1]),
        ("round_prefer_floor", [0, 0, 1, 1]),
        ("round_prefer_ceil", [0, 1, 1, 1]),
    ],
)
def test_nearest(rounding, expected):
    # Coordinates 0, 0.5, 1, 1.5; the last is clipped to 1.
    found = resize([0, 1], scales=[2.0], nearest_mode=rounding, coordinate_transformation_mode="asymmetric")
    assert found.tolist() == expected


def test_nearest_decides_in_float32():
    # 7 / float32(2.8) is 2.5 in float32, a tie that goes down; in float64 it is above 2.5.
    found = resize(
        np.arange(5.0),
        scales=[float(np.float32(2.8))],
        nearest_mode="round_prefer_floor",
        coordinate_transformation_mode="asymmetric",
    )
    assert found[7] == 2


def test_size_is_computed_in_float32():
    assert resize(np.zeros(10), scales=[float(np.float32(0.7))]).shape == (7,)


def test_older_operators():
    for version, op_type in [(10, "Resize"), (9, "Upsample")]:
        assert resize([1, 2], version=version, op_type=op_type, scales=[2.0]).tolist() == [1, 1, 2, 2]


def test_crop_and_resize_extrapolates():
    x, roi = np.arange(4.0), np.array([0.0, 2.0])
    words = {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": -1.0}
    found = kernel_for("Resize")(Call("Resize", 19, (x, roi, None, np.array([3])), words))
    assert found.tolist() == [0, 3, -1]  # coordinates 0, 3, 6

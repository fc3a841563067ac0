import pytest

from tensortriage.engines.process.input_names import matched_inputs


@pytest.mark.parametrize(
    ("declared", "engine", "expected"),
    [
        (["x", "k"], {"k": (), "x": ()}, {"x": "x", "k": "k"}),  # by name, whatever the engine's order
        (["x", "k"], {"k2": ("k", "k2"), "x": ("x",)}, {"x": "x", "k": "k2"}),  # by another name of the tensor
        (["x", "unused", "k"], {"x": (), "k": ()}, {"x": "x", "k": "k"}),  # one is dropped
        (["x", "k"], {"p0": (), "p1": ()}, {"x": "p0", "k": "p1"}),  # by order
        (["x", "k", "m"], {"p0": (), "k": (), "p1": ()}, {"x": "p0", "k": "k", "m": "p1"}),  # what is left, by order
        (["a", "b"], {"b": ("a", "b"), "a2": ("a",)}, {"a": "a2", "b": "b"}),  # a name of its own goes first
        ([], {}, {}),
        (["x"], {"p0": (), "p1": ()}, None),  # more than the model has
        (["x", "k", "m"], {"p0": (), "k": ()}, None),  # x or m: nobody can tell
    ],
)
def test_by_name_then_tensor_name_then_order(declared, engine, expected):
    assert matched_inputs(declared, engine) == expected

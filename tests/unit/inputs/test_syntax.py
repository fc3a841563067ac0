"""The expected values are Polygraphy 0.53.6's own: tools/args/util parse_meta and parse_arglist_to_dict."""

import math
from pathlib import Path

import pytest

from tensortriage.errors import UsageError
from tensortriage.inputs import syntax


def test_names_are_split_at_the_last_colon():
    assert syntax.split_name("a:b:0.5") == ("a:b", "0.5")
    assert syntax.split_name("0.5") == ("", "0.5")


def test_numbers_keep_their_kind():
    assert syntax.parse_named(["3", "x:1e-3", "y:inf"], syntax.parse_number) == {"": 3, "x": 1e-3, "y": math.inf}
    assert isinstance(syntax.parse_number("3"), int)
    with pytest.raises(UsageError, match="'much' is not a number"):
        syntax.parse_number("much")


def test_shapes():
    shapes = syntax.parse_shapes(["in:0:[1,3,224,224]", "b:[batch, -1]", "c:['n',None]", "s:[]", "t:1x3x8", "v:[7]"])
    assert shapes == {
        "in:0": (1, 3, 224, 224),
        "b": ("batch", None),
        "c": ("n", None),
        "s": (),
        "t": (1, 3, 8),
        "v": (7,),
    }


@pytest.mark.parametrize("word", ["[1,3]", "x", "x:", "x:[1,3", "x:[1,,3]", "x:[1,-2]", "x:1x", "x:[1,[2]]", "x:1,3"])
def test_other_shapes_are_refused(word):
    with pytest.raises(UsageError) as caught:
        syntax.parse_shapes([word])
    assert caught.value.slug == "shape-malformed"
    assert word in caught.value.message


def test_ranges():
    assert syntax.parse_ranges(["[0,1]", "a:b:[-inf,2.5]"]) == {"": (0, 1), "a:b": (-math.inf, 2.5)}


@pytest.mark.parametrize("word", ["0,1", "[1]", "[1,2,3]", "[2,1]", "[nan,1]", "[a,b]", "x:", "[]"])
def test_other_ranges_are_refused(word):
    with pytest.raises(UsageError) as caught:
        syntax.parse_ranges([word])
    assert caught.value.slug == "range-malformed"


def test_scripts():
    assert syntax.parse_script("dir/loader.py", "load_data") == (Path("dir/loader.py"), "load_data")
    assert syntax.parse_script("dir/loader.py:other", "load_data") == (Path("dir/loader.py"), "other")

"""What is asked of folding, and that one option gives the data of a command and those of its proof."""

from pathlib import Path

import pytest

from tensortriage.cli.declared import parameters, taken
from tensortriage.errors import UsageError
from tensortriage.model.transforms.constant_folding import FoldOptions
from tensortriage.values.options import OptionPart
from tensortriage_surgeon.requests import FoldArguments, SanitizeRequest


@pytest.mark.parametrize(
    ("given", "options"),
    [
        ({}, None),
        ({"infer": False}, None),
        ({"fold": True}, FoldOptions()),
        (
            {"fold": True, "limit": "1K", "passes": 2, "shapes": False},
            FoldOptions(max_result_bytes=1024, passes=2, shapes=False),
        ),
        ({"fold": True, "infer": False}, FoldOptions(infer_shapes=False)),
        ({"fold": True, "infer_each": False}, FoldOptions(infer_shapes=False)),
    ],
)
def test_how_constants_are_folded(given, options):
    assert FoldArguments(**given).value() == options


@pytest.mark.parametrize("given", [{"limit": "1K"}, {"passes": 1}, {"shapes": False}, {"infer_each": False}])
def test_options_that_refine_folding_need_it(given):
    with pytest.raises(UsageError) as caught:
        FoldArguments(**given).value()
    assert caught.value.slug == "option-needs-another"


def test_data_for_running_a_model_are_those_of_its_proof():
    """One option fills both; a model to sanitize may have values of one name."""
    words = {"model": Path("m.onnx"), "output": Path("o.onnx"), "inputs": ("a.npz",), "input_shapes": ()}
    usual = {one.name: None if one.default is None or not one.multiple else () for one in parameters(SanitizeRequest)}
    found = SanitizeRequest(**taken(OptionPart(SanitizeRequest), usual | words))
    assert found.feeding.paths == found.proof.feeding.paths == ("a.npz",)
    assert (found.source.mend_names, found.strict) == (True, True)

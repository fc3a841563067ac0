"""What the commands of this package do unless they are told otherwise, and what only --help-all lists."""

from pathlib import Path

import pytest

from tensortriage.cli.declared import parameters, taken
from tensortriage.values.options import OptionPart
from tensortriage_steps.consistency.request import ConsistencyRequest
from tensortriage_steps.request import StepsRequest

MADE_UP = {"--seed", "--val-range", "--iterations", "--data-loader-script", "--data-loader-backend-module"}


@pytest.mark.parametrize(
    ("request_type", "values", "rare"),
    [
        (
            StepsRequest,
            {"drift": True, "diagnosis": True, "free_running": False},
            {"--no-drift", "--no-diagnosis"},
        ),
        (ConsistencyRequest, {"streams": True, "rows": None}, {"--no-streams"}),
    ],
)
def test_defaults_and_what_only_the_long_help_lists(request_type, values, rare):
    made = request_type(model=Path("m.onnx"), target="openvino")
    assert {name: getattr(made, name) for name in values} == values
    assert made.feeding.most is None
    options = parameters(request_type)
    assert {one.opts[0] for one in options if getattr(one, "rare", False)} == {*MADE_UP, "--external-data-dir", *rare}
    given = {one.name: one.default for one in options if isinstance(one.default, str | int | float | Path)}
    words = {one.name: () if one.multiple or one.nargs == -1 else given.get(one.name) for one in options}
    words |= {"model": made.model, "target": made.target}
    assert request_type(**taken(OptionPart(request_type), words)) == made

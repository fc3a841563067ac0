"""The request of ``triage check feed``, each field with its option; light to import, since help needs it."""

from pathlib import Path

from tensortriage.sdk import argument, external_data_field, option, reference_field, request


@request
class FeedFilesRequest:
    """Two files of inputs.

    Attributes:
        mine: Inputs on which the network is right.
        theirs: Inputs of another program.
        model: ONNX file on which the difference is to be measured; None for none.
    """

    # fmt: off
    mine: Path = argument("MINE")
    theirs: Path = argument("THEIRS")
    model: Path | None = option(
        "--model", "MODEL", "Report the cost of the difference at this model's outputs; needed if THEIRS has saved "
        "outputs.", default=None, group="Cost")
    reference: str = reference_field("Engine that runs the model.")
    external_data_dir: Path | None = external_data_field()
    # fmt: on

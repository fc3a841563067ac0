"""The model file that ``triage run`` runs, and the one that --save-onnx writes, with the chosen outputs."""

from pathlib import Path

from tensortriage.cli.run.options import RunOptions
from tensortriage.errors import UsageError
from tensortriage.model.model import ExternalData
from tensortriage.values.dtype import Precision
from tensortriage.workflows.common.output_selection import OutputChoice
from tensortriage.workflows.edits.convert_request import ConvertRequest
from tensortriage.workflows.edits.requests import ProofRequest, Source, Target, Verify


def model_to_run(model: Path, given: RunOptions, outputs: OutputChoice, folder: Path) -> Path:
    """Return the file to run, after ``--fp-to-fp16``; write it for ``--save-onnx``, with the outputs to compare.

    Args:
        model: The file named on the command line.
        given: The options.
        outputs: The tensors that are compared.
        folder: The folder of a converted model while it is run.

    Raises:
        UsageError: When options of writing are given and nothing is written (``option-needs-another``).
    """
    source = Source(model, given.request.external_data_dir)
    if given.save_onnx is None and given.layout is not ExternalData.LEAVE:
        raise UsageError(
            "--save-external-data has no effect: no model is written",
            slug="option-needs-another",
            cure="add --save-onnx FILE",
        )
    precision = Precision.FP16 if given.to_fp16 else None
    if given.save_onnx is None and precision is None:
        return model
    from tensortriage.workflows.edits.convert import convert  # with the modules of edits and their proof

    unproven = ProofRequest(verify=Verify.NEVER)
    if given.save_onnx is not None:
        convert(
            ConvertRequest(
                source=source,
                target=Target(given.save_onnx, given.layout),
                outputs=outputs,
                precision=precision,
                infer_shapes=given.infer_shapes,
                proof=unproven,
            )
        )
    if precision is None:
        return model
    converted = folder / model.name
    target = Target(converted, ExternalData.AUTO)
    convert(ConvertRequest(source=source, target=target, precision=precision, proof=unproven))
    return converted

"""Build the engines of a comparison without running them: what ``run --iterations 0`` asks for."""

from tensortriage.errors import UsageError
from tensortriage.model.model import Model
from tensortriage.runs.runner import Tally
from tensortriage.runs.workspace import Workspace
from tensortriage.workflows.common.output_selection import chosen_values
from tensortriage.workflows.comparison.compare_request import CompareRequest
from tensortriage.workflows.comparison.participants import Live, numbered


def build_engines(request: CompareRequest) -> Tally:
    """Compile the model for every engine of a comparison, with the outputs that it compares.

    Raises:
        UsageError: When no engine is named.
        EngineError: When a build fails.
    """
    specs = [*([request.reference] if request.reference else []), *request.targets]
    if not specs:
        raise UsageError("no engine to build", slug="engine-none", cure="give --target ENGINE")
    assert request.model is not None, "without a model there is nothing to build"
    model = Model.load(request.model, external_data_dir=request.external_data_dir)
    changed = model
    if request.target_model is not None:
        changed = Model.load(request.target_model, external_data_dir=request.external_data_dir)
    values, tally = chosen_values(model, request.outputs), Tally()
    with Workspace() as workspace:
        for number, (name, spec) in enumerate(numbered(specs)):
            mine = model if number == 0 and request.reference else changed
            live = Live(name, spec, mine, workspace=workspace, limits=request.limits, tally=tally)
            try:
                live.prepare(values)
            finally:
                live.release()
    return tally

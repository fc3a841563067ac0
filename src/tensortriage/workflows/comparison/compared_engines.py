"""The engines of a comparison: the reference's and the targets', each with the model that it runs."""

import logging

from tensortriage.engines.cpu_features import sums_in_int16
from tensortriage.engines.spec import PLAIN
from tensortriage.errors import UsageError
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.runs.analyses.given_layouts import as_its_file_lies, held_network, holds_network
from tensortriage.runs.feeds.feed_request import feeds
from tensortriage.runs.lab import Lab
from tensortriage.runs.tally import Tally
from tensortriage.workflows.common.output_selection import chosen_values
from tensortriage.workflows.comparison.compare_request import CompareRequest
from tensortriage.workflows.comparison.participants import Live, numbered

_logger = logging.getLogger(__name__)


def build_engines(request: CompareRequest) -> Tally:
    """Compile the model for every engine of a comparison, with the outputs that it compares, and run none.

    Raises:
        UsageError: When no engine is named.
        EngineError: When a build fails.
    """
    assert request.model is not None, "without a model there is nothing to build"
    model = Model.load(request.model, external_data_dir=request.external_data_dir)
    values = chosen_values(model, request.outputs)
    with Lab(limits=request.limits) as lab:
        engines = engines_of(request, model, lab)
        if not engines:
            raise UsageError("no engine to build", slug="engine-none", cure="give --target ENGINE")
        for engine in engines:
            engine.prepare(values)
            engine.release()
        return lab.tally


def engines_of(request: CompareRequest, model: Model, lab: Lab) -> list[Live]:
    """Return the engines of a comparison, first the reference, if it is one."""
    changed = model
    if request.target_model is not None:
        changed = Model.load(request.target_model, external_data_dir=request.external_data_dir)
    reference = request.reference or PLAIN
    if request.reference and sums_in_int16(reference.name):
        # All rows of the judge are imported with these, which most processors do without.
        from tensortriage.envelope.explanations import CORRECTLY_ROUNDED
        from tensortriage.envelope.reference import cut_off, cut_off_in_words

        lost = cut_off(lab, reference, model, next(iter(feeds(request.feeding, model))))
        if lost:
            _logger.warning("%s", cut_off_in_words(reference, lost))
            reference = CORRECTLY_ROUNDED
    own = [reference] if request.reference else []

    def feed() -> Feed:
        return next(iter(feeds(request.feeding, changed)))

    targets = [as_its_file_lies(spec, changed, feed, reference, lab) for spec in request.targets]
    held = [
        held_network(spec, model, feed(), reference, lab) if changed is model and holds_network(spec) else None
        for spec in targets
    ]
    models = [*(model for _ in own), *(each.model if each and each.model else changed for each in held)]
    known_only = request.outputs.is_everything
    return [
        Live(name, spec, each, lab, warm_up=request.warm_up, known_outputs_only=known_only)
        for (name, spec), each in zip(numbered([*own, *targets]), models, strict=True)
    ]

"""How does a file that was given take its data? Numbers in a wrong order are no fault of an engine."""

import dataclasses

from tensortriage.diagnose.sdk import (
    Answer,
    Arranged,
    EngineSpec,
    Evidence,
    Investigation,
    arranged,
    error_size,
    held_network,
    rung,
)

QUESTION = "which data layout does the given file expect?"
HELD = "what does the given file hold?"


@rung(
    QUESTION,
    cost="a build and a run of each layout that fits",
    after="does the reference add 8-bit products exactly?",
)
def file_layout(inv: Investigation, _: Evidence) -> Answer | None:
    """Find out which of a file's inputs and outputs are which of the model's, and how their axes lie."""
    question = inv.question
    of_file = question.on_model(question.target_model) if question.target_model is not None else question

    def told(spec: EngineSpec) -> EngineSpec:
        found = arranged(spec, of_file.model, of_file.feeds[0], question.reference, inv.lab)
        if found is not None and (found.words or found.errors or found.weights):
            inv.record.answered(QUESTION, _answer(found), options=dict(found.spec.options), errors=list(found.errors))
        return found.spec if found is not None else spec

    target = told(question.target)
    against = told(question.against) if question.against is not None else None
    asking = dataclasses.replace(question, target=target, against=against)
    if question.target_model is None and question.against is None:
        held = held_network(target, question.model, question.feeds[0], question.reference, inv.lab)
        if held is not None:
            form = "is read as an ONNX model" if held.model else "shows its outputs only"
            inv.record.answered(HELD, f"it {form}{': ' * bool(held.words)}{held.words}")
            asking = dataclasses.replace(asking, target_model=held.model)
    return Answer(question=asking) if asking != question else None


def _answer(found: Arranged) -> str:
    weights = f"; its weights are {found.weights}, and it is judged as such" if found.weights else ""
    return _order(found) + weights


def _order(found: Arranged) -> str:
    held = found.words or "as the model has it"
    if not found.words and not found.errors:
        return held
    if not found.errors:
        return f"{held}: no other order fits"
    right, *others = found.errors
    least = error_size(min(others))
    return f"{held}: off by {error_size(right)}, and {least} or more in the {len(others)} other layouts that fit"

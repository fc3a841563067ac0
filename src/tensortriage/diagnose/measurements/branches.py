"""The model with the branches that a feed takes in place of its Ifs."""

import dataclasses

import numpy as np

from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.model.transforms.inline_branch import ELSE, THEN, take_branches


def fed_to(model: Model, feed: Feed) -> Feed:
    """Return a feed with the inputs of a model alone, which may have lost some of them with a branch."""
    names = {spec.name for spec in model.inputs}
    if names.issuperset(feed.tensors):
        return feed
    return dataclasses.replace(feed, tensors={name: feed.tensors[name] for name in feed.tensors if name in names})


def with_taken_branches(inv: Investigation, feed: Feed) -> tuple[Model, tuple[str, ...]]:
    """Return the model without any If in its main graph, and which branch each took on a feed, as ``if/then_branch``.

    Raises:
        EngineError: When the reference does not show a condition.
        ModelError: When a branch cannot be put in place (``branch-not-taken``).
    """
    model, paths = inv.model, []
    while holders := [node for node in model.graph.nodes if node.op_type == "If"]:
        conditions = dict.fromkeys(node.inputs[0] for node in holders)
        made = [name for name in conditions if model.graph.producer(name) and name not in model.graph.constants]
        known = {**feed.tensors, **{n: model.graph.weight(n) for n in conditions if n in model.graph.constants}}
        shown = inv.lab.values(inv.question.reference, model, fed_to(model, feed), made)
        known |= {name: np.asarray(shown[name]) for name in made}
        taken = {node.name: THEN if np.reshape(known[node.inputs[0]], -1)[0] else ELSE for node in holders}
        for name, branch in taken.items():
            outer = model.graph.origin(name).body
            paths.append("/".join(filter(None, (outer, name, branch))))
        model = take_branches(model, taken)
    return model, tuple(paths)

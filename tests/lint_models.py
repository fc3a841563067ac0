"""Lint small models written as ONNX text."""

import models
from tensortriage.model.io.parse import Message
from tensortriage.model.lint.finding import Aims
from tensortriage.model.model import Model
from tensortriage.values.dtype import Precision
from tensortriage_polygraphy.lint.rules import lint

FP16, BF16 = Aims(frozenset({Precision.FP16})), Aims(frozenset({Precision.BF16}))


def findings(text, aims=None, *, edit=lambda message: None):
    """Return what lint finds in a model; ``edit`` changes its message first."""
    message = models.proto(text)
    edit(message)
    model = models.of_message(message)
    return list(lint(model, Message(message, {}), aims or Aims()))


def found(text, aims=None, *, edit=lambda message: None):
    """Return (slug, severity, node) of each finding but those about names."""
    rows = findings(text, aims, edit=edit)
    return [(f.slug, f.severity.value, f.node) for f in rows if f.source == "rule"]


def with_weight(name, array):
    """Return an edit that adds an initializer."""
    from onnx import numpy_helper

    return lambda message: message.graph.initializer.append(numpy_helper.from_array(array, name))


__all__ = ["BF16", "FP16", "Aims", "Model", "findings", "found", "with_weight"]

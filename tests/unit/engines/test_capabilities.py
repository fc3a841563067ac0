"""Capabilities are declared: what a class inherits from counts, and never the name of a method."""

import pytest

from tensortriage.engines import registry
from tensortriage.engines.capabilities import DeclaredCapability, ReportsPrecision
from tensortriage.engines.registry import resolve
from tensortriage.engines.spec import EngineSpec, Hardware
from tensortriage.values.dtype import Precision


class Guessed:
    """An engine with methods of the right names, which mean something else."""

    options = {}  # noqa: RUF012

    def __init__(self, *, limits=None):
        pass

    def precision(self, options):
        return "double, roughly"

    def hardware(self, options):
        return "abacus"


class Declared(Guessed, ReportsPrecision):
    def precision(self, options):
        return "bf16"


@pytest.mark.parametrize(("engine", "precision"), [(Guessed, Precision.FP32), (Declared, Precision.BF16)])
def test_a_method_that_is_not_declared_is_not_called(monkeypatch, engine, precision):
    monkeypatch.setattr(registry, "_resolve", lambda name: engine)
    assert resolve(EngineSpec("mine")).precision is precision
    assert resolve(EngineSpec("mine")).hardware is Hardware.ANY


@pytest.mark.parametrize("name", registry.known())
def test_our_own_engines_declare_what_they_have(name):
    engine = registry.create(EngineSpec(name))
    for capability in DeclaredCapability.__subclasses__():
        has = all(callable(getattr(engine, method, None)) for method in capability.__abstractmethods__)
        assert has == isinstance(engine, capability), capability.__name__

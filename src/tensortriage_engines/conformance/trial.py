"""Does an engine work in an environment? It converts a small network there, runs it, and the result is known.

The network is one of the conformance suite, or the engine's own where it exports networks: all its numbers are whole
and small, so that every format holds them.
"""

import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np

from tensortriage.engines.sdk import ChecksOptions, EngineError, EngineSpec, RunsNetworks, create
from tensortriage_engines.conformance.models import examples
from tensortriage_engines.conformance.suite import TOLERANCE


def try_out(engine: str, target: str, python: str) -> None:
    """Convert and run a small network.

    Args:
        engine: The name of the engine.
        target: Its spec, with the Python of the environment.
        python: That Python.

    Raises:
        TriageError: When the engine does not start, does not take the network, or computes something else.
    """
    with tempfile.TemporaryDirectory(prefix="triage-trial-") as name:
        folder, made = Path(name), create(EngineSpec(engine))
        if isinstance(made, RunsNetworks):
            options, feed, wanted = made.small_network(folder)
            spec = EngineSpec(engine, {**options, "worker": python})
            path, _ = made.export(spec.options, folder / "network", exporter="dynamo")
        else:
            example = next(example for example in examples() if example.name == "conv")
            spec, path, feed = EngineSpec.parse(target), example.save(folder), example.feeds[0]
            (wanted,) = example.expected(feed).values()
        if isinstance(made, ChecksOptions):
            made.check(spec.options)
        with closing(made.compile(path, spec.options)) as session:
            (found,) = session.run(feed).values()
    if found.shape != wanted.shape or not np.abs(found - wanted).max() <= TOLERANCE:
        raise EngineError(
            "it gives wrong numbers for a small Conv", slug="environment-failed", cure="use another release"
        )

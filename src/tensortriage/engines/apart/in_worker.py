"""The far side: a script whose engine is one of this package.

It lies in a folder of its own because a worker puts the folder of a script on the path of modules.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from tensortriage.engines.apart import NAME, own_class
from tensortriage.engines.base import Engine, Session
from tensortriage_worker.silence import APART


class EngineInWorker:
    """Class of the worker's engine."""

    def compile(self, model: Path, options: Mapping[str, str]) -> Session:
        """Build the model with the engine that the options name."""
        os.environ.pop(APART, None)
        rest = dict(options)
        engine: Engine = own_class(rest.pop(NAME))()
        return engine.compile(model, rest)

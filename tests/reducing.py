"""What tests of the reducer share: models with known faults, and a check that looks for nodes."""

import sys
from pathlib import Path

import numpy as np
import onnx

from tensortriage_testing import feed_for, residual_dag, save_model

FAULTY = """
from tensortriage_testing import FaultyEngine
class Engine(FaultyEngine): pass
"""

NEEDS = """
from tensortriage.model.model import Model
from tensortriage_testing import Fault, FaultyEngine

NEEDED = {needed!r}

class Engine(FaultyEngine):
    def compile(self, model, options):
        names = {{node.name for node in Model.load(model).graph.nodes}}
        Engine.fault = Fault("scale", node=NEEDED[0], amount=1.5) if names.issuperset(NEEDED) else None
        return super().compile(model, options)
"""
"""A fault that shows only while all of some nodes are there, however far apart."""

LOOKING = """
import sys

data = open("polygraphy_debug.onnx", "rb").read()

def has(name):  # NodeProto.name is field 3, a string; importing onnx would take longer than everything else
    return b"\\x1a" + bytes([len(name)]) + name.encode() in data

with open(LOG, "a") as log:
    log.write(" ".join(name for name in NAMES if has(name)) + "\\n")
sys.exit(1 if all(map(has, sys.argv[1:])) else 0)
"""
"""Fails when all nodes named are there; writes the nodes of every model it has seen."""


def dag(folder: Path, nodes: int = 24, *, seed: int = 0) -> list[str]:
    """Write ``m.onnx``, ``m.npz`` and the script of a faulty engine; return the names of the nodes."""
    model = residual_dag(nodes, seed=seed)
    save_model(model, folder / "m.onnx")
    np.savez(folder / "m.npz", **feed_for(model))
    (folder / "faulty.py").write_text(FAULTY)
    names = [node.name for node in model.graph.node]
    (folder / "looking.py").write_text(f"LOG = {str(folder / 'log.txt')!r}\nNAMES = {names!r}\n{LOOKING}")
    return names


def looking_for(*names: str) -> list[str]:
    """Return the words of a check that fails when a model holds these nodes."""
    return [sys.executable, "-S", "-E", "looking.py", *names]


def seen(folder: Path) -> list[str]:
    """Return the nodes of every model that the check has seen, a line for each."""
    log = folder / "log.txt"
    return log.read_text().splitlines() if log.exists() else []


def nodes_of(path: Path) -> list[str]:
    """Return the names of the nodes of a model file."""
    return [node.name for node in onnx.load(path).graph.node]


class Deaf:
    """A listener that listens to nothing."""

    def step(self, step):
        pass

    def progress(self, text):
        pass

    def checked(self, progress):
        pass

    def tell(self, text):
        pass

"""Diagnosing small models in this process: a text, a feed, a target."""

import shlex

import click
import numpy as np

from engine_scripts import engine_file
from models import proto, write
from tensortriage.cli import cli
from tensortriage.diagnose.rungs.rung import Rung
from tensortriage.report.document import Report
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.workflows.diagnosis.diagnose import diagnose
from tensortriage.workflows.requests import DiagnoseRequest

_asked = Rung.__call__


def _as_declared(rung, inv, evidence):
    answer = _asked(rung, inv, evidence)
    assert answer.verdict is None or answer.verdict.kind in rung.ends, (rung.title, answer.verdict.kind)
    return answer


Rung.__call__ = _as_declared  # a rung that ends otherwise than its row of the ladder says


def ask(folder, model, feed, target, *, repro=False, **given):
    """Diagnose a model (ONNX text or message) on a target; ``fault:...`` stands for a `FaultyEngine` with options.

    The culprit is not cut out as a case of its own unless asked to: that would be a third of the time.
    """
    path = write(folder / "model.onnx", model) if not hasattr(model, "exists") else model
    np.savez(folder / "feed.npz", **feed)
    if target.startswith("fault:"):
        target = f"script:{engine_file()},{target.removeprefix('fault:')}"
    feeding = FeedRequest(paths=(str(folder / "feed.npz"),))
    request = DiagnoseRequest(model=path, target=target, case=folder / "case", feeding=feeding, repro=repro, **given)
    verdict = diagnose(request)
    for line in verdict.next:
        parse(line)
    return verdict, Report.load(folder / "case")


def parse(line):
    """Parse a command line of ``triage`` as its command does, and run nothing; other programs' are left alone."""
    words, command, context = shlex.split(line), cli, click.Context(cli, info_name="triage")
    if words.pop(0) != "triage":
        return
    while isinstance(command, click.Group):
        command = command.get_command(context, word := words.pop(0))
        assert command is not None, f"no command '{word}': {line}"
    with command.make_context("triage", words):
        pass


def step(verdict, beginning):
    """Return the step whose question begins like this."""
    return next(each for each in verdict.steps if each.question.startswith(beginning))


def named(text, *names):
    """Return the message of an ONNX text whose nodes have these names."""
    model = proto(text)
    for node, name in zip(model.graph.node, names, strict=True):
        node.name = name
    return model


def softmax_chain():
    """Return the message of a model of four ops: scale (Mul), tanh, softmax and last (Mul), from x to y."""
    text = """<ir_version: 8, opset_import: ["": 17]>
      g (float[4,8] x) => (float[4,8] y) <float[8] w = {1,2,3,4,5,6,7,8}> {
        a = Mul(x, w)
        b = Tanh(a)
        s = Softmax<axis=1>(b)
        y = Mul(s, x)
      }"""
    return named(text, "scale", "tanh", "softmax", "last")


CHAIN_FEED = {"x": np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)}
"""What it is fed."""

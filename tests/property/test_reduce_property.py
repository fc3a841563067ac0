"""Whatever nodes of whatever graph a fault needs, the reduction ends with these nodes, and shows that it needs each."""

import contextlib
import tempfile
from pathlib import Path
from unittest import mock

import onnx
from hypothesis import given, settings
from hypothesis import strategies as st

from property.graphs import random_graphs
from reducing import Deaf, nodes_of
from tensortriage.runs.commands.check import CheckSpec
from tensortriage.runs.commands.process import Finished, Processes
from tensortriage.runs.commands.transcript import Printed
from tensortriage.workflows.reduce import ReduceRequest, reduce


@settings(deadline=None, max_examples=15)
@given(graph=random_graphs(), data=st.data())
def test_the_needed_nodes_are_left(graph, data):
    items = [node.name for node in graph.model.graph.nodes if node.op_type != "Constant"]
    needed = data.draw(st.sets(st.sampled_from(items), min_size=1, max_size=3))

    def run(_, command):
        """Take the place of the command: fail when all needed nodes are there."""
        there = {node.name for node in onnx.load(command.words[1]).graph.node}
        return Finished(int(needed <= there), Printed(), 0.0)

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), mock.patch.object(Processes, "run", run):
        graph.model.save("m.onnx")
        check = CheckSpec(words=("check", "polygraphy_debug.onnx"))
        result = reduce(ReduceRequest(model=Path("m.onnx"), output=Path("r.onnx"), check=check), listener=Deaf())
        assert {node.name for node in result.kept} == needed
        assert set(nodes_of("r.onnx")) - set(items) <= {node.name for node in graph.model.graph.nodes}
        onnx.checker.check_model("r.onnx", full_check=True)
    assert (result.minimality, result.verified) == ("one-minimal", True)
    assert all(node.without not in ("", "same") for node in result.kept) or len(result.kept) == 1

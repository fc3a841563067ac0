"""Do blocks, run one after the other, give what the whole gives?"""

import numpy as np
import pytest

from engine_scripts import engine_file
from models import of_message
from tensortriage.engines.spec import EngineSpec
from tensortriage.inputs.synthetic.random import random_feeds
from tensortriage.model.cutting.narrow_cuts import blocks_of
from tensortriage.model.model import Model
from tensortriage.model.transforms.mark_outputs import mark_outputs, markable
from tensortriage.runs.blocks.block_walk import BlockWalk
from tensortriage.runs.lab import Lab
from tensortriage_testing.models import encoder

PLAIN = EngineSpec.parse("onnxruntime:optimization=none")


@pytest.fixture(scope="module")
def model():
    return of_message(encoder())


@pytest.fixture(scope="module")
def feeds(model):
    return tuple(random_feeds(model, seed=0, iterations=2, value_ranges={}, shapes={}))


@pytest.fixture
def lab():
    with Lab() as made:
        yield made.remembering


def walk(model, feeds, lab, weight_bytes=1 << 20):
    return BlockWalk(model, feeds, blocks_of(model, weight_bytes=weight_bytes), reference=PLAIN, lab=lab)


def test_every_block_is_fed_with_what_the_whole_computes(model, feeds, lab):
    values = markable(model)
    with lab.session(PLAIN, mark_outputs(model, values), sequence=True) as run:
        golden = [run(feed.tensors) for feed in feeds]
    walked = walk(model, feeds, lab)
    assert len(walked.blocks) > 2
    seen = set()
    for made in walked:
        piece = Model.load(made.path)
        assert {node.name for node in piece.graph.nodes if node.op_type != "Constant"} == {*made.block.nodes}
        for feed, block_feed, known in zip(feeds, made.feeds, golden, strict=True):
            for name, array in block_feed.tensors.items():
                np.testing.assert_array_equal(array, feed.tensors[name] if name in feed.tensors else known[name])
            assert block_feed.origin is feed.origin
        seen |= {*made.block.nodes}
    assert seen == {node.name for node in model.graph.nodes if node.op_type != "Constant"}


def test_who_walks_again_asks_nothing(model, feeds, lab):
    """Nor does who carries the reference's own results on: they are what it computed on the walk."""
    for _ in range(2):
        walked = walk(model, feeds, lab)
        numbers = [made.number for made in walked]
        walked.carried(numbers[0], PLAIN)
        assert lab.tally.checks == len(numbers) * len(feeds)
    assert lab.tally.builds == len(numbers)


def test_the_file_of_a_block_is_gone_behind_it(model, feeds, lab):
    paths = [made.path for made in walk(model, feeds, lab)]
    assert paths
    assert not any(path.exists() or path.with_name(path.name + ".data").exists() for path in paths)


def test_a_faulty_block_is_carried_to_the_outputs(model, feeds, lab, tmp_path):
    """What the whole model gives on the faulty engine is what its block gives there, carried on by the reference."""
    file = engine_file()
    node = next(node for node in model.graph.nodes if node.op_type == "Softmax")
    spec = EngineSpec.parse(f"script:{file},kind=scale,node={node.name},amount=1.5")
    walked = walk(model, feeds, lab)
    (number,) = [made.number for made in walked if node.name in made.block.nodes]
    ends = walked.carried(number, spec)
    whole = lab.outputs(spec, model, feeds[0])
    assert ends
    for name, (golden, target) in ends.items():
        assert not np.array_equal(golden, target)
        np.testing.assert_allclose(target, whole[name], rtol=1e-5, atol=1e-6)

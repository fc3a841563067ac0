"""The floors of the first feed, evaluated while reference and target are built and run.

They depend on the model, the feed and the target's format, and engines seldom keep every processor busy while they
build. The reference's outputs, which they judge, are waited for. An evaluation that is not needed, because the
reference is unsound or the target does not build, ends at its next operator.
"""

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from tensortriage.diagnose.measurements.outputs import judged_outputs, measured_with, seeing
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.envelope.floors import evaluated_floors
from tensortriage.envelope.setting import Floors
from tensortriage.errors import EngineError, UsageError
from tensortriage.model.cutting.narrow_cuts import weights_bytes
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.runs.blocks.memory import block_bytes, memory_bytes
from tensortriage.runs.budget import BudgetSpent
from tensortriage.values.dtype import Precision
from tensortriage.values.spec import ValueSpec
from tensortriage.values.store import TensorStore


@contextlib.contextmanager
def floors_ahead(inv: Investigation) -> Iterator[Investigation]:
    """Yield the investigation that has the floors of the first feed, for `output_floors` to use once.

    They are measured from now on, until the end at most. It is as it was given where another engine than float64 has a
    part in them, where another question is asked first, or where memory does not allow to evaluate the model while
    engines build it.
    """
    question = inv.question
    others = question.target_model, question.network, question.kept, inv.precision is Precision.INT8
    memory = memory_bytes(question.limits.memory_bytes)
    is_small = memory is None or weights_bytes(inv.model.graph.initializers.values()) <= block_bytes(memory)
    if any(others) or not question.trusts_float64 or not is_small:
        yield inv
        return
    golden: Future[TensorStore] = Future()
    lab = inv.lab.apart()
    with ThreadPoolExecutor(1, thread_name_prefix="floors") as pool:
        floors = pool.submit(_measured, Investigation.begin(question, lab=lab), _Awaited(golden))

        def taken(outputs: TensorStore) -> Floors | None:
            if golden.done():
                return None
            golden.set_result(outputs)
            with contextlib.suppress(EngineError, UsageError, BudgetSpent):  # the caller then tries another way
                found = floors.result()
                inv.lab.tally.add(lab.tally)
                return found
            return None

        try:
            yield dataclasses.replace(inv, floors_ahead=taken)
        finally:
            lab.stop()
            golden.cancel()


def _measured(inv: Investigation, golden: TensorStore) -> Floors:
    feed, outputs = inv.question.feeds[0], judged_outputs(inv)
    fed = {name: ValueSpec.of(name, array) for name, array in feed.tensors.items()}
    values, what = measured_with(inv, value_specs(inv.model, fed))
    with seeing(inv, feed, values, what) as seen:
        setting = inv.setting(feed)
        judged = setting.of_reference(golden, outputs)
        return evaluated_floors(setting, values, judged=judged, seen=seen, what=what)


class _Awaited:
    """The tensors of a store that is yet to come; a `TensorStore`."""

    def __init__(self, store: Future[TensorStore]) -> None:
        self._store = store

    def names(self) -> Sequence[str]:
        """Return the names."""
        return self._store.result().names()

    def spec(self, name: str) -> ValueSpec:
        """Return dtype and shape of a tensor."""
        return self._store.result().spec(name)

    def checksum(self, name: str) -> str:
        """Return the content key of a tensor."""
        return self._store.result().checksum(name)

    def __contains__(self, name: object) -> bool:
        return name in self._store.result()

    def __getitem__(self, name: str) -> np.ndarray:
        return self._store.result()[name]

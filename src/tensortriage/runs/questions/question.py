"""A question about a model: the user's question, or one derived from it."""

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

from tensortriage.compare.judgement.tolerance import Tolerance
from tensortriage.engines.base import Limits
from tensortriage.engines.registry import resolve
from tensortriage.engines.spec import EngineSpec, Hardware
from tensortriage.inputs.conform import Casting, check_feed
from tensortriage.inputs.feed import Feed, origin_of
from tensortriage.inputs.synthetic.size_sweep import Shaped
from tensortriage.model.model import Model
from tensortriage.model.transforms.mark_outputs import markable
from tensortriage.values.dtype import Precision


@dataclasses.dataclass(frozen=True, kw_only=True)
class Question:
    """The user's question, or one derived from it.

    Attributes:
        model: The model assumed to be right.
        feeds: The samples, at least one.
        reference: The engine assumed to be right.
        target: The engine under suspicion.
        target_model: The target's model, when that is another ONNX file.
        tolerance: The user's own tolerance for the model's outputs; None to judge by the noise floor.
        limits: Time and memory limits of isolated engines.
        input_paths: Files of the feeds, and shapes of made-up ones, for the commands that a verdict suggests.
        batch_bytes: Largest amount of captured tensors held at once.
        budget_seconds: Wall time the whole may take; None for any.
        sweep: Feeds of other shapes.
        random_too: Whether to look at random data as well when real data pass.
        builds: How often the target is built again; None for the number that suits its engine.
        kept: Nodes that compute in fp32 on the target, whatever its format.
        against: Another target that the target is compared with; None for none.
        taken: Branches that stand in place of their If in ``model``, which is the user's on these feeds alone.
        trusts_float64: Whether the envelope may be centred on float64; not where other engines contradict that.
        network: Spec of the PyTorch network that the model was exported from; None when that is not at hand.
        goal: Options that set a goal for the outputs, by a metric, for the commands that a verdict suggests.
        others: Makes up other feeds, to be tried where the first is uninformative; None where feeds are the user's.
        began: When the user's command began to work on it, by `time.perf_counter`.
    """

    model: Model
    feeds: Sequence[Feed]
    reference: EngineSpec
    target: EngineSpec
    target_model: Model | None = None
    tolerance: Tolerance | None = None
    limits: Limits = dataclasses.field(default_factory=Limits)
    input_paths: Sequence[str] = ()
    batch_bytes: int | None = 1 << 30
    budget_seconds: float | None = None
    sweep: Sequence[Shaped] = ()
    random_too: bool = True
    builds: int | None = None
    kept: tuple[str, ...] = ()
    network: EngineSpec | None = None
    against: EngineSpec | None = None
    taken: tuple[str, ...] = ()
    trusts_float64: bool = True
    goal: tuple[str, ...] = ()
    others: Callable[[], Iterator[Feed]] | None = dataclasses.field(default=None, compare=False)
    began: float = dataclasses.field(default_factory=time.perf_counter, compare=False)

    @cached_property
    def precision(self) -> Precision:
        """The number format the target computes in."""
        return resolve(self.target).precision

    @property
    def hardware(self) -> Hardware:
        """The class of hardware that the target computes on."""
        return resolve(self.target).hardware

    @property
    def inputs_word(self) -> str:
        """``real`` when any feed is real, else ``random``."""
        return origin_of(self.feeds)

    @property
    def tolerances(self) -> Mapping[str, Tolerance]:
        """The user's tolerance by the name of each output of the model; empty when the noise floor judges."""
        return {} if self.tolerance is None else {spec.name: self.tolerance for spec in self.model.outputs}

    @cached_property
    def values(self) -> tuple[str, ...]:
        """Every value of the model that can be marked, in topological order."""
        return markable(self.model)

    def on_model(self, model: Model) -> "Question":
        """Return the same question about another model alone."""
        feeds = tuple(check_feed(feed, model.inputs, casting=Casting.ROUND) for feed in self.feeds)
        return dataclasses.replace(self, model=model, feeds=feeds, target_model=None, others=None)

    def on_target(self, target: EngineSpec, *, kept: tuple[str, ...]) -> "Question":
        """Return the same question about another target, on which some nodes compute in fp32; without random data."""
        return dataclasses.replace(self, target=target, target_model=None, kept=kept, random_too=False)

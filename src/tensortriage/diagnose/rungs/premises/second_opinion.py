"""Is the reference itself right? A second and a third engine are asked at the ops where it matters.

A wrong reference hides in the noise floor: where float64 disagrees with it, the floor rises by just that much, and any
target passes. So a floor that is too high for rounding alone is looked into: which op is it, how far do its operands'
last bits move it (its conditioning), and with whom does another engine side? The same is asked at the op that a target
is about to be blamed for.

How much rounding alone may do at an op: the larger of its conditioning and a random walk of one rounding per operand
element (Higham, Accuracy and Stability of Numerical Algorithms, 2.8 and 4.2), times the factor that engines are given.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage.compare.judgement.relative_error import MATCH_FACTOR, error_of, least_floor, say
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.measurements.floors import ROUNDED, jitter
from tensortriage.diagnose.measurements.local import golden_feed, parts_of, shape_values
from tensortriage.diagnose.measurements.outputs import judge, output_floors
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Culprit, Verdict, VerdictKind
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import EngineError, UsageError
from tensortriage.inputs.feed import Feed
from tensortriage.model.cutting.explode import PREFIX, explode
from tensortriage.runs.lab import FLOAT64, PLAIN, Mark
from tensortriage.values.dtype import DType, Precision

QUESTION = "does a second reference agree with the first?"
LEAST = least_floor(Precision.FP32)
MOST_DOUBTED = 8
"""Ops at which the others are asked, those with the largest difference first."""


@dataclasses.dataclass(frozen=True, slots=True)
class Opinion:
    """What several engines make of one op, all fed with the reference's own operands.

    Attributes:
        value: The op's result.
        bound: Relative error that rounding alone may cause there.
        results: Engine to its result: ``reference``, ``float64``, ``second`` and ``target``, as far as each has one.
        akin: Whether second engine and target are one engine, so that their agreeing is no evidence.
    """

    value: str
    bound: float
    results: Mapping[str, np.ndarray]
    akin: bool = False

    def error(self, one: str, other: str) -> float:
        """Return the relative error of one engine's result against another's; inf when one has none."""
        if one not in self.results or other not in self.results:
            return math.inf
        reference, target = self.results[other], self.results[one]
        return error_of(measure(reference, target)) if reference.shape == target.shape else math.inf

    def agree(self, one: str, other: str) -> bool:
        """Say whether two engines agree but for rounding."""
        return self.error(one, other) <= self.bound

    @property
    def reference_is_alone(self) -> bool:
        """Whether two others agree with each other and none of them with the reference."""
        others = [name for name in ("float64", "second", "target") if name in self.results]
        pairs = [(one, other) for one in others for other in others if one < other]
        if self.akin:
            pairs.remove(("second", "target"))
        with_it = [name for name in others if self.agree(name, "reference")]
        return not with_it and any(self.agree(one, other) for one, other in pairs)

    @property
    def float64_is_alone(self) -> bool:
        """Whether the second engine sides with the reference against float64, and nobody with float64."""
        return self.disputed and self.agree("second", "reference") and not self.agree("target", "float64")

    @property
    def disputed(self) -> bool:
        """Whether the reference and float64 disagree."""
        return "float64" in self.results and not self.agree("reference", "float64")


def second_reference(inv: Investigation, evidence: Evidence) -> Verdict | None:
    """Where the floor of an output is too high for rounding, find out whether the reference or float64 is wrong."""
    floors, feed = evidence.worst.floors, evidence.feed
    golden = inv.golden(feed)
    coarsest = max((least(golden.spec(name).dtype) for name in golden.names()), default=0.0)
    allowed = MATCH_FACTOR * coarsest * math.sqrt(len(inv.model.graph.nodes) + 1.0)
    high = [name for name, floor in floors.fp32.items() if floor > allowed]
    if not high:
        return None
    since = inv.mark()
    witness = FLOAT64 if floors.source == "float64" else other_than(inv)
    try:
        found = opinions(inv, feed, doubted(inv, feed, witness))
    except (EngineError, UsageError) as problem:
        inv.answered(QUESTION, f"unknown: {problem.message}", since=since)
        return None
    wrong = [opinion for opinion in found if opinion.reference_is_alone]
    if wrong:
        return reference_is_wrong(inv, wrong, QUESTION, since=since)
    if any(opinion.float64_is_alone for opinion in found):
        opinion = next(opinion for opinion in found if opinion.float64_is_alone)
        inv.answered(
            QUESTION,
            f"float64 alone differs at '{opinion.value}' by {say(opinion.error('reference', 'float64'))}: "
            "floors are measured by jittered inputs instead",
            since=since,
            value=opinion.value,
        )
        inv.doubts_float64 = True
        again = output_floors(inv)
        evidence.results = tuple(judge(inv, item.feed, item.metrics, again) for item in evidence.results)
        return None
    if disputed := [opinion.value for opinion in found if opinion.disputed]:
        inv.answered(QUESTION, f"undecided: opinions differ at '{disputed[0]}'", since=since, values=disputed)
        return None
    inv.answered(
        QUESTION,
        f"yes, op by op: the floor of '{high[0]}' is {say(floors.fp32[high[0]])} because the model amplifies rounding",
        since=since,
        outputs=high[:12],
    )
    return None


def at_the_culprit(inv: Investigation, feed: Feed, value: str) -> Verdict | None:
    """Before a target is blamed for an op: does any other engine agree with the reference there?"""
    since = inv.mark()
    question = "is it the target that is wrong there, or the reference?"
    try:
        found = opinions(inv, feed, [value])
    except (EngineError, UsageError) as problem:
        inv.answered(question, f"unknown: {problem.message}", since=since)
        return None
    if not found:
        return None
    opinion = found[0]
    if opinion.reference_is_alone:
        return reference_is_wrong(inv, found, question, since=since)
    names = {"float64": "float64", "second": str(other_than(inv))}
    agreeing = [words for name, words in names.items() if opinion.agree(name, "reference")]
    inv.answered(
        question,
        f"the target: {' and '.join(agreeing)} agree{'s' * (len(agreeing) == 1)} with the reference"
        if agreeing
        else "unknown: no other engine agrees with either",
        since=since,
        errors={name: opinion.error(name, "reference") for name in opinion.results if name != "reference"},
        bound=opinion.bound,
    )
    return None


def reference_is_wrong(inv: Investigation, wrong: Sequence[Opinion], question: str, *, since: Mark) -> Verdict:
    """Record that the reference stands alone, and return the verdict."""
    culprits = [culprit_of(inv, opinion) for opinion in wrong]
    first = culprits[0]
    inv.answered(
        question,
        f"no: the reference is wrong at {first.op_type} '{first.node}'",
        since=since,
        values=[opinion.value for opinion in wrong],
        errors={
            opinion.value: {name: opinion.error("reference", name) for name in opinion.results if name != "reference"}
            for opinion in wrong
        },
        bounds={opinion.value: opinion.bound for opinion in wrong},
    )
    return inv.verdict(
        VerdictKind.COMPARISON_UNSOUND,
        0.95,
        f"the reference {inv.question.reference} is wrong at {first.op_type} '{first.node}': {first.reason}",
        culprits=culprits,
        next=[inv.command("diagnose", "--reference", str(other_than(inv)), "--target", str(inv.question.target))],
    )


def culprit_of(inv: Investigation, opinion: Opinion) -> Culprit:
    """Return the op at which the reference is alone."""
    node = inv.model.graph.producer(opinion.value)
    assert node is not None
    names = {"float64": "float64", "second": str(other_than(inv)), "target": str(inv.question.target)}
    others = [name for name in names if name in opinion.results]
    agreeing = [names[one] for one in others if any(one != other and opinion.agree(one, other) for other in others)]
    return Culprit(
        node.name,
        node.op_type,
        opinion.value,
        local_error=opinion.error("reference", others[0]),
        floor_ratio=opinion.error("reference", others[0]) / opinion.bound if opinion.bound else None,
        reason=f"on equal operands {' and '.join(agreeing)} agree, and the reference differs from them by "
        f"{say(opinion.error('reference', others[0]))}",
    )


def doubted(inv: Investigation, feed: Feed, witness: EngineSpec) -> list[str]:
    """Return the values whose op, on golden operands, differs most between the reference and another engine."""
    golden, specs = inv.golden(feed), inv.specs(feed)
    found: dict[str, float] = {}
    for nodes in parts_of(inv, golden):
        exploded = explode(inv.model, [[name] for name in nodes], specs=specs, shape_values=shape_values(inv, feed))
        fed = Feed(f"{feed.name} exploded", golden_feed(exploded, golden, feed), feed.origin)
        values = [name for name in inv.values if name in set(exploded.outputs.values()) and name in golden]
        answer = inv.measured(witness, exploded.model, fed, values, golden=golden, what=f"each op alone on {witness}")
        found |= {name: error_of(metrics) for name, metrics in answer.metrics.items()}
    ranked = sorted(found, key=lambda name: -found[name])
    return [name for name in ranked if found[name] > MATCH_FACTOR * least(golden.spec(name).dtype)][:MOST_DOUBTED]


def opinions(inv: Investigation, feed: Feed, values: Sequence[str]) -> list[Opinion]:
    """Ask every engine at the ops that make some values, in one small model."""
    nodes = [inv.model.graph.producer(value) for value in values]
    names = list(dict.fromkeys(node.name for node in nodes if node is not None))
    if not names:
        return []
    golden = inv.golden(feed)
    exploded = explode(
        inv.model, [[name] for name in names], specs=inv.specs(feed), shape_values=shape_values(inv, feed)
    )
    fed = golden_feed(exploded, golden, feed)
    inv.listener.progress(f"asking other engines at {len(names)} ops")
    answers: dict[str, Mapping[str, np.ndarray]] = {}
    asked = {"float64": FLOAT64, "second": other_than(inv)}
    if inv.precision not in ROUNDED:
        asked["target"] = inv.question.target
    for word, spec in asked.items():
        try:
            with inv.new_runner(spec, exploded.model) as runner:
                answers[word] = dict(runner.run(fed))
                if word == "float64" or (word == "second" and "float64" not in answers):
                    answers["clean"], answers["moved"] = answers[word], dict(runner.run(jitter(fed)))
        except (EngineError, UsageError):
            continue
    return [opinion_of(inv, feed, value, fed, answers) for value in values if value in golden]


def opinion_of(
    inv: Investigation,
    feed: Feed,
    value: str,
    fed: Mapping[str, np.ndarray],
    answers: Mapping[str, Mapping[str, np.ndarray]],
) -> Opinion:
    """Return what was answered at one value."""
    clean, moved = (answers.get(word, {}).get(value) for word in ("clean", "moved"))
    conditioning = error_of(measure(clean, moved)) if clean is not None and moved is not None else 0.0
    node = inv.model.graph.producer(value)
    operands = [fed[PREFIX + name].size for name in (node.uses if node else ()) if PREFIX + name in fed]
    terms = max(operands, default=1)
    bound = MATCH_FACTOR * max(conditioning, least(inv.golden(feed).spec(value).dtype) * math.sqrt(terms))
    results = {word: answers[word][value] for word in ("float64", "second", "target") if value in answers.get(word, {})}
    akin = {"second", "target"} <= results.keys() and other_than(inv).name == inv.question.target.name
    return Opinion(value, bound, {"reference": np.asarray(inv.golden(feed)[value]), **results}, akin)


def least(dtype: DType | None) -> float:
    """Return the relative error of rounding once to an element type; fp32's for types that are wider or exact."""
    narrow = (Precision.FP16, Precision.BF16, Precision.FP8E4M3, Precision.FP8E5M2)
    return least_floor(next((precision for precision in narrow if precision.dtype is dtype), Precision.FP32))


def other_than(inv: Investigation) -> EngineSpec:
    """Return an engine that is not the reference: ONNX Runtime, with or without its optimizations."""
    reference = inv.question.reference
    return EngineSpec("onnxruntime", {}) if reference.name == "onnxruntime" else PLAIN

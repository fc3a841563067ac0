"""Makes the builds of a study: builds the model on the engine, judges the outputs, keeps them and sorts the files.

A build is judged by its outputs, against the noise floor or the user's tolerance, or by the user's command, which finds
the engine and its tactics in files. Every build is kept in the case by content and made only once there.
"""

import dataclasses
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tensortriage.api import EngineError, measure
from tensortriage.engines.sdk import PinsTactics, SavesEngines
from tensortriage.envelope.sdk import Metrics, Outcome, error_of, mismatched, resolve
from tensortriage.sdk import (
    Checker,
    CheckIdentity,
    Choice,
    Compared,
    Derived,
    EngineSpec,
    Experiment,
    Feed,
    GoldenValues,
    MappedStore,
    ObservedPlan,
    OutputJudge,
    ShardWriter,
    TacticRecord,
    UsageError,
    digest,
    error_size,
    features,
    feed_digest,
    save_record,
    verdict_word,
)
from tensortriage_builds.trial import BuildJudgement, BuildTrial, Difference

TACTICS_SUFFIX = ".tactics.json"
CACHE_SUFFIX = ".timing.cache"
CACHE_OPTION = "timing_cache"


@dataclasses.dataclass(frozen=True, slots=True)
class Judged:
    """A judge's report on a build: judgement, kind of failure, a line for people, its largest relative error."""

    judgement: BuildJudgement
    signature: str = ""
    reason: str = ""
    error: float | None = None


Outputs = Mapping[str, Mapping[str, np.ndarray]]
"""Outputs of a build, by feed and output."""


@dataclasses.dataclass
class NumbersJudge:
    """Judges the outputs of builds.

    Attributes:
        inv: Holds the golden outputs.
        decides: Names the outputs that fail.
        feeds: The feeds to run on each build.
        identity: Digest of everything besides the build that its judgements depend on.
    """

    source: GoldenValues
    decides: OutputJudge
    feeds: Sequence[Feed]
    identity: str

    def judge(self, outputs: Outputs, name: str) -> Judged:
        """Compare every output on every feed with the reference's."""
        worst: tuple[bool, float, str, str] = (False, 0.0, "", "")
        for feed in self.feeds:
            golden = self.source.outputs(feed)
            expected = {
                spec.name: golden[spec.name] for spec in self.source.question.model.outputs if spec.name in golden
            }
            made = outputs[feed.name]
            if problem := mismatched(expected, made):
                return Judged(BuildJudgement.BAD, "other outputs", problem)
            pairs = {output: Compared.of(right, made[output]) for output, right in expected.items()}
            failing = self.decides.failing(pairs)
            rows = [
                (name in failing, self.decides.error(pair.metrics), name, _kind(pair.metrics))
                for name, pair in pairs.items()
            ]
            worst = max(worst, *rows)
        failed, error, output, kind = worst
        reason = f"largest relative error {error_size(error)}" + (f", at output '{output}'" if output else "")
        return Judged(BuildJudgement.BAD if failed else BuildJudgement.GOOD, kind if failed else "", reason, error)


@dataclasses.dataclass
class CommandJudge:
    """Lets the user's command judge.

    Attributes:
        checker: Runs it.
        reads: Files and settings that its answers depend on.
        feeds: None: the command runs the engine itself.
    """

    checker: Checker
    reads: CheckIdentity
    feeds: Sequence[Feed] = ()

    @property
    def identity(self) -> str:
        """Digest of everything besides the build that judgements depend on; the first judgement settles it."""
        return self.reads.digest

    def judge(self, outputs: Outputs, name: str) -> Judged:
        """Run the command once and sort its artifacts."""
        iteration = self.checker.next_iteration()
        ruling = self.checker.check(iteration)
        self.reads.settle()
        self.checker.sort(verdict_word(ruling.failed), iteration, label=name)
        words = {True: BuildJudgement.BAD, False: BuildJudgement.GOOD, None: BuildJudgement.OTHER}
        return Judged(words[ruling.failed], ruling.signature if ruling.failed else "", ruling.reason)


BuildJudge = NumbersJudge | CommandJudge
"""Judges a build by its files."""


def check_ability(spec: EngineSpec, *, takes_tactics: bool, saves: bool) -> None:
    """Refuse options that would have no effect.

    Args:
        spec: Engine to build.
        takes_tactics: Whether every build is to be given tactics.
        saves: Whether a built engine is to be written.

    Raises:
        UsageError: When the engine takes no tactics (``tactics-not-taken``) or writes no file (``engine-not-saved``).
    """
    engine = resolve(spec).engine
    if takes_tactics and not isinstance(engine, PinsTactics):
        raise UsageError(f"{spec} takes no tactics", slug="tactics-not-taken", cure="leave out --load-tactics")
    if saves and not isinstance(engine, SavesEngines):
        raise UsageError(f"{spec} writes no engine file", slug="engine-not-saved", cure="leave out -o")


@dataclasses.dataclass(frozen=True, slots=True)
class BuildFiles:
    """Where a judge finds the engine of a build and its tactics; None where it does not look."""

    engine: Path | None = None
    tactics: Path | None = None


NO_FILES = BuildFiles()


class EngineBench:
    """Makes builds on an engine, each once in a case.

    Args:
        source: The model, and the lab that builds it.
        spec: Engine and options.
        judge: Decides whether a build is good.
        base: Choices that every build is given.
        files: Place of a build for the judge.
        record: Whether builds report their tactics, where the engine can.
    """

    def __init__(
        self,
        source: GoldenValues,
        spec: EngineSpec,
        judge: BuildJudge,
        *,
        base: Sequence[Choice] = (),
        files: BuildFiles = NO_FILES,
        record: bool = True,
    ) -> None:
        self._lab = source.lab
        self._model = source.question.model
        self._spec = spec
        self._judge = judge
        self._base = {choice.layer: choice for choice in base}
        self._engine = resolve(spec).engine
        self._files = files
        self._record = record
        self._keyed = False
        self._cache: Path | None = None
        self._identity = self._lab.key(spec, self._model, None, dataclasses.asdict(self._lab.limits))

    @property
    def pins(self) -> bool:
        """Whether tactics can be given to a build."""
        return self._record and isinstance(self._engine, PinsTactics)

    @property
    def identity(self) -> str:
        """Digest of all that a judgement depends on."""
        return digest(self._identity, self._judge.identity)

    def deployed(self) -> BuildTrial | None:
        """Build once without recording; None when recording changes no option of the engine."""
        engine = self._engine
        if not isinstance(engine, PinsTactics) or dict(engine.recording(self._spec.options)) == self._spec.options:
            return None
        return self._build("deployed", (), record=False)

    def build(self, name: str, choices: tuple[Choice, ...] = ()) -> BuildTrial:
        """Build once and judge it, unless the case knows the answer."""
        return self._build(name, choices, record=self._record)

    def _build(self, name: str, choices: tuple[Choice, ...], *, record: bool) -> BuildTrial:
        given = tuple({**self._base, **{choice.layer: choice for choice in choices}}.values())
        forced = [(choice.layer, choice.key, choice.label) for choice in given]

        def kept() -> Derived[BuildTrial]:
            return self._lab.derived(BuildTrial, question, self.identity, forced, record)

        question = f"build {name} of {self._spec}"
        trial = kept().known()
        if trial is None:
            self._lab.progress(question)
            started = time.perf_counter()
            trial = self._made(name, kept().key, given, record=record)
            trial = dataclasses.replace(trial, seconds=time.perf_counter() - started)
            kept().keep(trial, seconds=trial.seconds)  # the first judgement settles the key
        self._remember(trial)
        return trial

    def difference(self, one: BuildTrial, other: BuildTrial) -> Difference | None:
        """Compare the outputs of two builds; None when one was not run."""
        if not one.values or not other.values:
            return None
        left, right = (MappedStore(self._lab.case.folder / trial.values) for trial in (one, other))
        found = []
        for name in left.names():
            metrics = measure(left[name], right[name])
            feed, _, output = name.partition("/")
            found.append(Difference(output, feed, metrics.max_abs_error, error_of(metrics), (one.name, other.name)))
        return max(found, key=lambda difference: (difference.relative, difference.max_abs), default=None)

    def _remember(self, trial: BuildTrial) -> None:
        """Record a build's report about caches."""
        self._keyed = self._keyed or any(choice.key for choice in trial.choices)
        if "timing.cache" in trial.files and (trial.good or self._cache is None):
            self._cache = self._lab.case.folder / trial.files["timing.cache"]

    def _made(self, name: str, key: str, given: tuple[Choice, ...], *, record: bool) -> BuildTrial:
        engine_file = self._files.engine or self._lab.workspace.folder / "candidate.engine"
        cache = self._fresh_cache(given)
        spec = self._with(given, engine_file, cache, record=record)
        anew = Experiment(engine=spec, model=self._model, feed=None, observed=ObservedPlan(), build=1, repetition=None)
        try:
            with self._lab.session(spec, self._model, build=anew.build) as outputs_of:
                outputs = {feed.name: outputs_of(feed, repetition=None) for feed in self._judge.feeds}
                answer = self._lab.answer(anew)
        except EngineError as error:
            outcome = Outcome.of(error)
            return BuildTrial(
                name=name, judgement=BuildJudgement.OTHER, signature=outcome.kind.value, reason=outcome.message
            )
        tactics = TacticRecord(str(self._spec), answer.choices)
        if self._files.tactics is not None and answer.choices:
            save_record(tactics, self._files.tactics)
        judged = self._judge.judge(outputs, name)
        trial = BuildTrial(
            name=name,
            judgement=judged.judgement,
            signature=judged.signature,
            reason=judged.reason,
            error=judged.error,
            choices=answer.choices,
            features=features(answer.choices, answer.plan),
            files=self._sorted(name, judged.judgement, tactics, {"engine": engine_file, "timing.cache": cache}),
        )
        return self._with_outputs(trial, key, outputs)

    def _fresh_cache(self, given: tuple[Choice, ...]) -> Path | None:
        """Return the file of a build's timing cache, for engines whose tactics are entries of one; else None.

        Entries can be given only where the cache has them: builds with given tactics start from an earlier cache.
        """
        if not self._keyed or CACHE_OPTION not in self._engine.options or CACHE_OPTION in self._spec.options:
            return None
        path = self._lab.workspace.folder / f"candidate{CACHE_SUFFIX}"
        path.unlink(missing_ok=True)
        if given and self._cache is not None:
            shutil.copyfile(self._cache, path)
        return path

    def _with(self, given: tuple[Choice, ...], engine_file: Path, cache: Path | None, *, record: bool) -> EngineSpec:
        options: Mapping[str, str] = self._spec.options
        if isinstance(self._engine, PinsTactics):
            options = self._engine.recording(options) if record else options
            if given:
                path = self._lab.workspace.folder / f"given{TACTICS_SUFFIX}"
                save_record(TacticRecord(str(self._spec), given), path)
                options = self._engine.pinning(options, path)
        if isinstance(self._engine, SavesEngines):
            options = self._engine.saving(options, engine_file)
        if cache is not None:
            options = {**options, CACHE_OPTION: str(cache)}
        return self._spec.with_options(options)

    def _sorted(
        self, name: str, judgement: BuildJudgement, record: TacticRecord, made: Mapping[str, Path | None]
    ) -> dict[str, str]:
        """Keep a build's files in the case, in the folder of its judgement."""
        folder = self._lab.case.folder / judgement.value
        files: dict[str, str] = {}
        if record.choices:
            save_record(record, folder / f"{name}{TACTICS_SUFFIX}")
            files["tactics"] = f"{judgement.value}/{name}{TACTICS_SUFFIX}"
        for kind, path in made.items():
            if path is None or not path.exists():
                continue
            folder.mkdir(exist_ok=True)
            move = shutil.copyfile if path == self._files.engine else shutil.move
            move(path, folder / f"{name}.{kind}")
            files[kind] = f"{judgement.value}/{name}.{kind}"
        return files

    def _with_outputs(self, trial: BuildTrial, key: str, outputs: Outputs) -> BuildTrial:
        arrays = {f"{feed}/{name}": array for feed, row in outputs.items() for name, array in row.items()}
        if not arrays:
            return trial
        folder = self._lab.case.runs / f"build-{key}"
        with ShardWriter(folder) as writer:
            for name, array in arrays.items():
                writer.write(name, np.ascontiguousarray(array))
        values = str(folder.relative_to(self._lab.case.folder))
        return dataclasses.replace(trial, outputs=feed_digest(arrays)[:16], values=values)


def _kind(metrics: Metrics) -> str:
    return "not finite" if metrics.nonfinite_mismatch else "wrong"

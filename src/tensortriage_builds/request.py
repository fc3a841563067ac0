"""The request of a study of builds, each field with its option."""

from pathlib import Path
from typing import TYPE_CHECKING

from tensortriage.sdk import (
    ENGINES,
    RESULT,
    CheckOptions,
    FeedRequest,
    LimitOptions,
    Place,
    ToleranceOptions,
    artifact_field,
    case_field,
    external_data_field,
    flag,
    fresh_field,
    keep_artifact_field,
    model_field,
    option,
    part,
    reference_field,
    request,
    samples_field,
    target_field,
)
from tensortriage_builds.goal import BuildGoal

if TYPE_CHECKING:
    from tensortriage.api import Limits, Tolerance
    from tensortriage.sdk import CheckSpec


@request
class BuildRequest:
    """A request to study builds, and the judge.

    Attributes:
        model: ONNX file.
        target: Spec of the engine.
        check: Command that judges; None to compare with the reference.
        save_tactics: File of the tactics of every build for the check, and those of the good engine at the end.
        load_tactics: Tactics that every build is given.
        record: Whether builds report their tactics, where the engine can: some engines then build differently.
    """

    # fmt: off
    model: Path = model_field()
    target: str = target_field("Engine to build, NAME[:key=value,...].", default="", group=ENGINES)
    reference: str = reference_field("Engine assumed to be right (without --check).")
    tolerance: "Tolerance | None" = part(factory=ToleranceOptions)
    external_data_dir: Path | None = external_data_field()
    goal: BuildGoal = part(factory=BuildGoal)
    record: bool = flag(
        "--no-tactics", "Build exactly as deployed: recording tactics may change an engine's build.", default=True)
    check: "CheckSpec | None" = part(factory=CheckOptions)
    output: Path | None = option(
        "--output -o", "FILE", "File for the good engine, which can be rebuilt.",
        default=None, writes=Place.FILE, group=RESULT)
    case: Path = case_field()
    fresh: bool = fresh_field()
    artifact: Path = artifact_field("polygraphy_debug.engine", "File in which the check finds the engine to judge.")
    keep_artifact: bool = keep_artifact_field()
    feeding: FeedRequest = part(
        factory=FeedRequest, most=samples_field(2, "Largest number of feeds to run every build on.", group=ENGINES))
    limits: "Limits" = part(factory=LimitOptions)
    # fmt: on
    save_tactics: Path | None = None
    load_tactics: Path | None = None

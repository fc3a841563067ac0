"""The cost of builds and runs so far, as verdicts report it."""

import dataclasses


@dataclasses.dataclass(slots=True)
class BuildCount:
    """Builds of one engine: how many, and the wall time of all of them and of the longest in seconds."""

    builds: int = 0
    seconds: float = 0.0
    longest: float = 0.0


@dataclasses.dataclass(slots=True)
class Tally:
    """The cost so far.

    Attributes:
        engines: Builds by the names of engines.
        checks: Runs made.
        run_seconds: Wall time in runs.
        reference_run_seconds: The longest that one run of the reference took; other engines may take a multiple of it.
        seen: How many inner values were captured, by the way they were seen: ``marked`` as outputs, or an engine's own
            word (`tensortriage.engines.capabilities.ShowsValues`).
        commands: Command lines of the vendors' own tools that repeat the builds, each once.
    """

    engines: dict[str, BuildCount] = dataclasses.field(default_factory=dict)
    checks: int = 0
    run_seconds: float = 0.0
    reference_run_seconds: float = 0.0
    seen: dict[str, int] = dataclasses.field(default_factory=dict)
    commands: list[str] = dataclasses.field(default_factory=list)
    format: str = "tensortriage.tally/1"

    @property
    def builds(self) -> int:
        """Models compiled."""
        return sum(count.builds for count in self.engines.values())

    @property
    def builds_by_engine(self) -> dict[str, int]:
        """Models compiled, by the names of engines."""
        return {name: count.builds for name, count in self.engines.items()}

    @property
    def build_seconds(self) -> float:
        """Wall time in builds, in seconds."""
        return sum(count.seconds for count in self.engines.values())

    def built(self, engine: str, seconds: float = 0.0, *, builds: int = 1) -> None:
        """Count builds of an engine that took so many seconds together."""
        count = self.engines.setdefault(engine, BuildCount())
        count.builds += builds
        count.seconds += seconds
        count.longest = max(count.longest, seconds / max(builds, 1))

    def add(self, other: "Tally") -> None:
        """Add the cost from another tally."""
        for engine, count in other.engines.items():
            self.built(engine, count.seconds, builds=count.builds)
        self.checks += other.checks
        self.run_seconds += other.run_seconds

    def seconds_a_build(self, engine: str) -> float:
        """Return the mean wall time of one build of an engine, in seconds; 0 before the first."""
        count = self.engines.get(engine, BuildCount())
        return count.seconds / max(count.builds, 1)

    def longest_build(self, engine: str) -> float:
        """Return the wall time of the longest build of an engine, in seconds; 0 before the first."""
        return self.engines.get(engine, BuildCount()).longest

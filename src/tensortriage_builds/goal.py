"""When enough is known of the builds of a model."""

import functools

from tensortriage.sdk import Until, flag, option, parse_until, request


@request
class BuildGoal:
    """Condition for the end of a study.

    Attributes:
        width: Width of the rate's interval at which to stop, when both kinds were seen and no tactic separates them.
        pin: Whether to look for the guilty choice, and to make a good build again, by giving tactics.
    """

    # fmt: off
    until: Until | int = option(
        "--until", "WHEN", "When to stop. good or bad: at the first such build; N: after N builds; sure: when the "
        "failure rate is known.", default=Until.SURE, group="Stopping",
        read=functools.partial(parse_until, noun="builds", slug="build-until-unknown"))
    rate: float = option(
        "--rate", "SHARE", "For --until sure, when all builds are alike: stop once a share of differing builds of "
        "this size is excluded with 95 % confidence.", default=0.2, above=0, below=1)
    width: float = 0.3
    most: int = option(
        "--max-builds", "N", "Largest number of builds with free choice of tactics, unless --until sets the number.",
        default=50, least=1)
    seconds: float | None = option(
        "--budget", "SECONDS", "Time after which no new build begins.", default=None, least=0)
    pin: bool = flag("--no-pin", "Do not search for the guilty tactic by forcing tactics on builds.", default=True)
    # fmt: on

    @property
    def ends_at(self) -> int:
        """After how many free builds it ends at the latest."""
        return self.until if isinstance(self.until, int) else self.most

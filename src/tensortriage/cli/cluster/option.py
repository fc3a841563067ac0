"""``--cluster``: the same words wherever checks or cells can run elsewhere."""

from tensortriage.cli.options import Adds, option

OPTION = "--cluster"
WHOLE = "Run this command, which asks one thing after the other, on a node of it: "


def cluster_option(heading: str, text: str = "Run checks there: ") -> Adds:
    """Declare where checks run."""
    return option(OPTION, default="", metavar="WHERE", heading=heading,
                  help=f"{text}local:N for N processes of this machine, auto or ray://HOST:PORT for a Ray cluster; "
                       "add what each needs: ,gpus=1 ,tag=NAME.")  # fmt: skip

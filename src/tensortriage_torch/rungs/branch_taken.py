"""Does a network run other modules on these inputs than its file has? A branch of Python is exported as it was traced.

Tracing follows an ``if`` of Python once; what the other branch runs is not in the file.
"""

import dataclasses

from tensortriage.diagnose.sdk import Graph, enumeration
from tensortriage_torch.premises import NetworkPremises
from tensortriage_torch.rungs.network_values import modules_of

_MOST_NAMED = 3


@dataclasses.dataclass(frozen=True)
class BranchTaken:
    """A branch that the file has, where the network takes another one.

    Attributes:
        kept: Modules with weights that the file has, and the network does not run.
        left_out: Modules with weights that the network runs, and the file does not have.
    """

    kept: tuple[str, ...]
    left_out: tuple[str, ...]

    @property
    def words(self) -> str:
        """The difference and its cure."""
        return (
            f"on these inputs PyTorch runs {_named(self.left_out)} and not {_named(self.kept)}, which the file has in "
            "its place: a branch of Python (if), which tracing follows once, as its example takes it. Cure: write the "
            "condition so that it is exported (torch.where, torch.cond), or export with inputs that take this branch"
        )


def branch_taken(graph: Graph, network: NetworkPremises) -> BranchTaken | None:
    """Return the branch that a file has; None where it names no modules, or one side alone has some of its own.

    Modules that only the file has may be computed by a fused kernel of PyTorch's, without a call; those that only the
    network has may be folded into constants.

    Args:
        graph: The file.
        network: The network, called on the inputs in question.
    """
    weighted = dict.fromkeys(name.rpartition(".")[0] for name in network.shapes)
    named = {module for module in modules_of(graph) if module in network.paths}
    kept = tuple(module for module in weighted if module in named - network.ran)
    left_out = tuple(module for module in weighted if module in network.ran - named)
    return BranchTaken(kept, left_out) if kept and left_out else None


def _named(modules: tuple[str, ...]) -> str:
    more = [f"{len(modules) - _MOST_NAMED} more"] if len(modules) > _MOST_NAMED else []
    return enumeration([*(f"'{module}'" for module in modules[:_MOST_NAMED]), *more])

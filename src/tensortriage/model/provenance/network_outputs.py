"""Whether a model still represents the whole network that it was exported from, and which outputs are the network's.

Engines that run the network itself, not its ONNX file, must know: marking outputs leaves the computation as it was,
cutting and injecting do not. What changes the outputs or cuts a model notes it in the metadata of the graph.
"""

import json
from collections.abc import MutableMapping, Sequence

NETWORK_OUTPUTS = "tensortriage.network_outputs"


def note_outputs(metadata: MutableMapping[str, str], own: Sequence[str]) -> None:
    """Note, before outputs change, those that the network has; an earlier note stays."""
    metadata.setdefault(NETWORK_OUTPUTS, json.dumps(list(own)))


def note_part(metadata: MutableMapping[str, str]) -> None:
    """Note that a graph is a part of a network, or computes something else."""
    metadata[NETWORK_OUTPUTS] = "[]"


def noted_outputs(metadata: MutableMapping[str, str], own: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the network's outputs in its order; empty for a part, or another computation."""
    try:
        noted = json.loads(metadata[NETWORK_OUTPUTS]) if NETWORK_OUTPUTS in metadata else list(own)
    except (ValueError, RecursionError):
        return ()
    return tuple(map(str, noted)) if isinstance(noted, list) else ()

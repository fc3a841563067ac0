"""Files of tactics that others write: Polygraphy's replays, and TensorRT's verbose logs.

The log of a build with an editable timing cache gives keys and hashes of that cache; a replay is put into the words
that the adapter takes back.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tensortriage.engines.sdk import Choice
from tensortriage_engines.tensorrt.worker.tactics import hash_word, rows_of_log

_REPLAY, _ALGORITHM = "TacticReplayData", "Algorithm"


def read(text: str) -> tuple[str, Sequence[Choice]]:
    """Return the kind of a file and its choices; no choices for other kinds.

    Raises:
        ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError: When a replay is damaged.
    """
    if not text.lstrip().startswith("{"):
        return "log", [_choice(row) for row in rows_of_log(text)]
    content = json.loads(text)
    if content.get("polygraphy_class") != _REPLAY:
        return "", ()
    return "Polygraphy replay", [_from_replay(layer, algorithm) for layer, algorithm in content["replay"].items()]


def _from_replay(layer: str, algorithm: Mapping[str, Any]) -> Choice:
    """Return an algorithm of Polygraphy (0.46 and later) in the words that our adapter takes back."""
    if algorithm.get("polygraphy_class", _ALGORITHM) != _ALGORITHM:
        raise ValueError(f"layer '{layer}' holds no algorithm")
    return Choice(
        layer=layer,
        tactic=hash_word(algorithm["tactic"]),
        implementation=hash_word(algorithm["implementation"]),
        inputs=tuple(map(_tensor, algorithm["inputs"])),
        outputs=tuple(map(_tensor, algorithm["outputs"])),
    )


def _tensor(info: Mapping[str, Any]) -> str:
    layout = [str(info[name]) for name in ("vectorized_dim", "components_per_element") if info.get(name) is not None]
    strides = "x".join(str(stride) for stride in info["strides"])
    return ":".join([str(info["dtype"]).rpartition(".")[2].lower(), strides, *layout])


def _choice(row: Mapping[str, Any]) -> Choice:
    return Choice(
        layer=row["layer"],
        tactic=row["tactic"],
        implementation=row["implementation"],
        milliseconds=row["milliseconds"],
        key=row["key"],
    )

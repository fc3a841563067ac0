"""Post-processing of outputs before they are compared: the indices of the top K classes instead of their scores."""

import re
from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage.errors import UsageError
from tensortriage.frozen_dataclass import frozen_dataclass

_TOP_K = re.compile(r"(?:(?P<name>.+):)?top-(?P<k>\d{1,18})(?:,axis=(?P<axis>-?\d{1,18}))?", re.DOTALL)


@frozen_dataclass
class TopK:
    """The number of largest values that count, and their axis."""

    k: int
    axis: int = -1


def parse_top_k(words: Sequence[str]) -> Mapping[str, TopK]:
    """Read ``[OUTPUT:]top-K[,axis=A]`` words; the empty name stands for every other output.

    Raises:
        UsageError: When a word has another form.
    """
    rules: dict[str, TopK] = {}
    for word in words:
        match = _TOP_K.fullmatch(word)
        if match is None or int(match["k"]) < 1:
            raise UsageError(
                f"'{word}' is not a post-processing rule",
                slug="postprocess-malformed",
                cure="write [OUTPUT:]top-K[,axis=A], e.g. top-5 or logits:top-3,axis=1",
            )
        rules[match["name"] or ""] = TopK(int(match["k"]), int(match["axis"] or -1))
    return rules


def top_k(outputs: Mapping[str, np.ndarray], rules: Mapping[str, TopK]) -> dict[str, np.ndarray]:
    """Replace outputs by the indices of their K largest values, largest first, equal ones in order of index.

    K is cut to the length of the axis, as Polygraphy's ``--postprocess`` does it.

    Args:
        outputs: Arrays by output name.
        rules: K and axis by output name; the empty name stands for all others.

    Raises:
        UsageError: When a rule names an output that does not exist, or an axis that it does not have.
    """
    unknown = [name for name in rules if name and name not in outputs]
    if unknown:
        raise UsageError(
            f"--postprocess names '{unknown[0]}', which is no output",
            slug="value-unknown",
            cure="the outputs are: " + ", ".join(list(outputs)[:20]),
        )
    done = dict(outputs)
    for name, array in outputs.items():
        rule = rules.get(name, rules.get(""))
        if rule is None:
            continue
        if not -array.ndim <= rule.axis < array.ndim:
            raise UsageError(
                f"output '{name}' has no axis {rule.axis}: its shape is {list(array.shape)}",
                slug="axis-unknown",
                cure="give another axis, or leave this output out",
            )
        order = np.argsort(-np.asarray(array, np.float64), axis=rule.axis, kind="stable")
        done[name] = np.take(order, np.arange(min(rule.k, array.shape[rule.axis])), axis=rule.axis)
    return done

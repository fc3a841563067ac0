"""Differences in the activations of a recurrent layer: of its gates (f), its candidate (g) and its result (h)."""

from collections.abc import Iterator, Mapping, Sequence

from tensortriage_meanings.site import Meaning, MeantNode

_DEFAULT: Mapping[str, tuple[str, ...]] = {
    "LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",),
}  # fmt: skip
_OTHERS: Mapping[str, tuple[float, ...]] = {
    "HardSigmoid": (0.2, 0.5), "Relu": (), "Affine": (1.0, 0.0), "Sigmoid": (), "Tanh": (), "Softsign": (),
    "Elu": (1.0,),
}  # fmt: skip
"""Activations that layers of frameworks have, with their alpha and beta; HardSigmoid as Keras has it before 2.3."""
_WORDS = {"HardSigmoid": "HardSigmoid(0.2 x + 0.5)", "Affine": "none at all (linear)"}
_TAKES = ("HardSigmoid", "Affine", "Elu", "LeakyRelu", "ThresholdedRelu", "ScaledTanh")
"""Activations that take an alpha, whose values are given in the order of the activations."""
_CURE = "give the activations that are meant (activations, recurrent_activation)"


def activations(site: MeantNode) -> Iterator[Meaning]:
    """Yield a layer with other activations, for both directions: of one place, of all but the gates, and of all."""
    own, directions = _DEFAULT[site.op_type], 2 if site.text("direction") == "bidirectional" else 1
    given = site.attribute("activations")
    default = [*own] * directions
    stated = [each.decode() if isinstance(each, bytes) else str(each) for each in given or default]
    stated = stated[: len(default)]  # an RNN's own default has two, whatever its direction
    if len(stated) == len(own) * directions:
        yield from _others(stated, len(own), numbers=bool(site.attribute("activation_alpha")))
    if stated != default:
        yield Meaning(
            f"its activations were the default ones ({', '.join(own)}), not those that it has ({', '.join(stated)})",
            attributes={"activations": None, "activation_alpha": None, "activation_beta": None},
            cure=_CURE,
        )
    if site.attribute("activation_alpha") or site.attribute("activation_beta"):
        yield Meaning(
            "its activation_alpha and activation_beta were left out",
            attributes={"activation_alpha": None, "activation_beta": None},
        )
    if site.attribute("clip"):
        yield Meaning("its attribute clip were left out", attributes={"clip": None})


def _others(stated: Sequence[str], count: int, *, numbers: bool) -> Iterator[Meaning]:
    """Yield other activations.

    Args:
        stated: Those of the layer, of one direction after the other.
        count: How many a direction has.
        numbers: Whether the layer gives some of them an alpha: of two that take one, nobody would know which is whose.
    """
    places = {"its gates": [0], "its candidate": [1], "its result": [2]} if count > 1 else {"its activation": [0]}
    told = {words: at for words, at in places.items() if at[0] < count}
    if count > 2:
        told["its candidate and result"] = [1, 2]
    if count > 1:
        told["all of its activations"] = list(range(count))
    for other in _OTHERS:
        for words, at in told.items():
            made = [other if place % count in at else each for place, each in enumerate(stated)]
            taking = [each for each in made if each in _TAKES]
            if made == list(stated) or (taking and (numbers or any(each not in _OTHERS for each in taking))):
                continue
            was = ", ".join(dict.fromkeys(stated[place] for place in at))
            yield Meaning(
                f"{words} were {_WORDS.get(other, other)}, not {was}", attributes=_attributes(made, taking), cure=_CURE
            )
    if count > 1 and stated[0] != stated[1]:
        made = [stated[place - place % count + (1, 0, 2)[place % count]] for place in range(len(stated))]
        if not numbers:
            yield Meaning(
                "its gates had the activation of its candidate, and that had theirs",
                attributes=_attributes(made, [each for each in made if each in _TAKES]),
                cure=_CURE,
            )


def _attributes(made: Sequence[str], taking: Sequence[str]) -> dict[str, object]:
    numbers: dict[str, object] = {}
    for index, name in enumerate(("activation_alpha", "activation_beta")):
        if values := [_OTHERS[each][index] for each in taking if len(_OTHERS.get(each, ())) > index]:
            numbers[name] = values
    return {"activations": list(made), **numbers}

"""Matches the inputs of an engine with the model's, for engines rename, sort and drop them."""

from collections.abc import Mapping, Sequence


def matched_inputs(declared: Sequence[str], engine: Mapping[str, Sequence[str]]) -> dict[str, str] | None:
    """Return the engine's name of every declared input that the engine has.

    Engines rename inputs (OpenVINO 2024.0 and 2025.1 call an input that an Identity passes through after the output),
    sort them and drop those that nothing uses. Every input is known by its name, else by another name of the same
    tensor, else by its place among those that are left.

    Args:
        declared: Inputs that the model declares, in its order.
        engine: Inputs as the engine calls them, in its order, each with other names of the same tensor.

    Returns:
        Declared name to the engine's, in declared order; a declared input that the engine dropped is not in it. None
        when an input of the engine stays without partner.
    """
    found = {name: name for name in declared if name in engine}
    for own, others in engine.items():
        if own not in found:
            left = [name for name in others if name in declared and name not in found]
            found.update(dict.fromkeys(left[:1], own))
    rest = [name for name in engine if name not in found.values()]
    free = [name for name in declared if name not in found]
    if len(rest) > len(free) or (rest and len(rest) < len(free)):
        return None
    found.update(zip(free, rest, strict=False) if rest else ())
    return {name: found[name] for name in declared if name in found}

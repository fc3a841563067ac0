"""Pairs of outputs of a step and inputs of the next: caches of keys and values, states of recurrent networks.

Exporters give both one name with different words for the two sides: ``present.0.key`` and ``past_key_values.0.key``,
``hn`` and ``h0``. Names that are equal without that word, of one type and with shapes that may fit, are a pair; nothing
else is guessed.
"""

import dataclasses
import re
from collections.abc import Sequence

from tensortriage.envelope.sdk import ValueSpec
from tensortriage.sdk import UsageError, did_you_mean

NONE = "none"
"""Word of ``--carry`` for no carried values."""

_OLD = re.compile(
    r"^(?:past_key_values|past_key_value|past_kv|past|prev(?:ious)?|old|in(?:put)?|initial|cache|state)(?=[._/]|$)"
)
_NEW = re.compile(
    r"^(?:present_key_values|present_key_value|present_kv|present|r|new|next|updated|out(?:put)?|final|cache|state)"
    r"(?=[._/]|$)"
)
_OLD_END = re.compile(r"(?:[._/](?:in|input|prev|old|past|0)|(?<=^[hc])0)$")
_NEW_END = re.compile(r"(?:[._/](?:out|output|next|new|present|updated|n|1)|(?<=^[hc])n|(?<=[a-z])N)$")
_OLD_WITHIN = re.compile(r"(?<=[._/])(?:in|input|prev|old|past)[._/]")
_NEW_WITHIN = re.compile(r"(?<=[._/])(?:out|output|next|new|present|updated)[._/]")
"""Words by which exporters distinguish the two: transformers and Optimum (``past_key_values``, ``present``), torch.onnx
of caches given as lists (``past_key_0``), PyTorch's recurrent modules (``h0``/``hn``, ``h_0``/``h_n``, ``c0``/``cn``),
Silero and other streaming models (``state``/``stateN``), MobileCLIP-like ``x_in``/``x_out``, WeNet
(``att_cache``/``r_att_cache``), and lists of either (``cache_out_0``)."""


@dataclasses.dataclass(frozen=True, slots=True)
class Carry:
    """An output that is an input of the next step.

    Attributes:
        output: Name of the output.
        input: Name of the input.
    """

    output: str
    input: str


def carried(outputs: Sequence[ValueSpec], inputs: Sequence[ValueSpec], asked: Sequence[str] = ()) -> tuple[Carry, ...]:
    """Return the pairs carried from step to step, in the order of the inputs.

    Args:
        outputs: The model's outputs.
        inputs: Inputs of the model.
        asked: ``OUTPUT=INPUT``, each with at most one ``*`` on either side that matches the same text; or ``none``.
            Without any, pairs are found by name.

    Raises:
        UsageError: When a pair is not understood (``carry-unknown``), or cannot be one (``carry-misfit``).
    """
    if tuple(asked) == (NONE,):
        return ()
    found = _asked(outputs, inputs, asked) if asked else _by_name(outputs, inputs)
    order = {spec.name: place for place, spec in enumerate(inputs)}
    return tuple(sorted(found, key=lambda pair: order[pair.input]))


def _by_name(outputs: Sequence[ValueSpec], inputs: Sequence[ValueSpec]) -> list[Carry]:
    new: dict[str, list[ValueSpec]] = {}
    for spec in outputs:
        for stem in _stems(spec.name, _NEW, _NEW_END, _NEW_WITHIN):
            new.setdefault(stem, []).append(spec)
    found: list[Carry] = []
    paired: set[str] = set()
    for spec in inputs:
        for stem in _stems(spec.name, _OLD, _OLD_END, _OLD_WITHIN):
            named = [twin for twin in new.get(stem, ()) if twin.name != spec.name]
            twins = [twin for twin in named if twin.name not in paired and _may_be(twin, spec)]
            if len(twins) == 1:
                found.append(Carry(twins[0].name, spec.name))
                paired.add(twins[0].name)
                break
    return found


def _stems(name: str, *words: re.Pattern[str]) -> list[str]:
    """Return the rest of a name without the word for its old or new part, and the whole name."""
    short = [word.sub("", name, count=1) for word in words]
    whole = [stem for stem in short if stem != name] + [name]
    return list(dict.fromkeys(re.sub(r"[._/]+", ".", stem).strip(".") or "*" for stem in whole))


def unpaired(outputs: Sequence[ValueSpec], inputs: Sequence[ValueSpec], known: Sequence[str] = ()) -> tuple[Carry, ...]:
    """Return outputs with the inputs of floating-point numbers that they may be, by type and shape: one for each input.

    Args:
        outputs: The model's outputs.
        inputs: Inputs of the model.
        known: Names of inputs and outputs with a known part.

    They share a size that is known and above one: where all are open, or one, anything fits.
    """
    free = [spec for spec in outputs if spec.name not in known]
    found = []
    for spec in inputs:
        if spec.name in known or spec.dtype is None or not spec.dtype.is_float:
            continue
        twin = next((twin for twin in free if _may_be(twin, spec) and _share_a_size(twin, spec)), None)
        if twin is not None:
            free.remove(twin)
            found.append(Carry(twin.name, spec.name))
    return tuple(found)


def _asked(outputs: Sequence[ValueSpec], inputs: Sequence[ValueSpec], asked: Sequence[str]) -> list[Carry]:
    results, by_input = {spec.name: spec for spec in outputs}, {spec.name: spec for spec in inputs}
    found: list[Carry] = []
    for text in asked:
        ours, sign, theirs = text.partition("=")
        if not sign or not ours or not theirs or ours.count("*") > 1 or ours.count("*") != theirs.count("*"):
            raise UsageError(
                f"--carry {text} is not OUTPUT=INPUT",
                slug="carry-unknown",
                cure="name pairs, with one * on both sides for several: --carry 'present.*=past_key_values.*'",
            )
        pattern = re.compile("(.+)".join(re.escape(part) for part in ours.split("*")))
        hits = [(name, match) for name in results if (match := pattern.fullmatch(name))]
        if not hits:
            raise _unknown(text, "output", ours, results)
        for name, match in hits:
            twin = theirs.replace("*", match.group(1)) if "*" in theirs else theirs
            if twin not in by_input:
                raise _unknown(text, "input", twin, by_input)
            if not _may_be(results[name], by_input[twin]):
                raise UsageError(
                    f"output '{name}' cannot be input '{twin}' of the next step: their types or shapes differ",
                    slug="carry-misfit",
                    cure="correct --carry; triage inspect model lists types and shapes",
                )
            found.append(Carry(name, twin))
    if len({pair.input for pair in found}) < len(found):
        raise UsageError(
            "--carry gives an input two outputs", slug="carry-misfit", cure="let each input come from one output"
        )
    return found


def _unknown(text: str, kind: str, name: str, known: dict[str, ValueSpec]) -> UsageError:
    return UsageError(
        f"--carry {text}: the model has no {kind} '{name}'",
        slug="carry-unknown",
        cure=did_you_mean(name, list(known), otherwise=f"its {kind}s: {', '.join(list(known)[:12])}"),
    )


def _may_be(output: ValueSpec, given: ValueSpec) -> bool:
    """Return whether an output has the type of an input, and a shape that it may take."""
    if output.dtype is not None and given.dtype is not None and output.dtype is not given.dtype:
        return False
    if output.shape is None or given.shape is None:
        return True
    return len(output.shape) == len(given.shape) and all(
        not (isinstance(one, int) and isinstance(other, int)) or one == other
        for one, other in zip(output.shape, given.shape, strict=True)
    )


def _share_a_size(output: ValueSpec, given: ValueSpec) -> bool:
    sizes = zip(output.shape or (), given.shape or (), strict=False)
    return any(isinstance(one, int) and one == other and one > 1 for one, other in sizes)


def grown_axes(output: ValueSpec, given: ValueSpec, batch: Sequence[int | str | None] = ()) -> tuple[int, ...]:
    """Return the axes along which a carried value grows: open ones that input and output call by different names.

    Of caches without names of dimensions it is the last but one, the axis of positions.

    Args:
        output: A step's output.
        given: The next step's input.
        batch: Name or size of the batch axis, which does not grow.
    """
    if given.shape is None:
        return ()
    open_axes = [
        a for a, size in enumerate(given.shape) if not isinstance(size, int) and (not size or size not in batch)
    ]
    named = [
        axis
        for axis in open_axes
        if output.shape is not None and given.shape[axis] and given.shape[axis] != output.shape[axis]
    ]
    unnamed = [axis for axis in open_axes if not given.shape[axis]]
    return tuple(named or [axis for axis in unnamed if axis == len(given.shape) - 2])

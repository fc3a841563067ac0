"""Mistakes of programs with token numbers, masks and similar inputs: candidates for a whole feed."""

import functools
import itertools
from collections.abc import Iterator, Mapping

import numpy as np

from tensortriage_feeds.transforms import Tensors, Transform, identifier, of_input

_MASK_WORDS = ("mask",)
_TOKENS_LEAST = 3
RATES = (8000, 11025, 16000, 22050, 24000, 32000, 44100, 48000)
"""Samples per second, usual ones."""


def token_candidates(tensors: Tensors) -> Iterator[Transform]:
    """Yield mistakes in integer inputs (rows of tokens with their masks), likeliest first."""
    rows = {name: array for name, array in tensors.items() if array.dtype.kind in "iub" and array.ndim in (1, 2)}
    masks = {name: array for name, array in rows.items() if _is_mask(name, array)}
    ids = {n: a for n, a in rows.items() if n not in masks and a.shape[-1] >= _TOKENS_LEAST and not _is_flag(n, a)}
    for name, array in masks.items():
        yield from _masks(name, array)
    for name, array in ids.items():
        mask = next((each for each in masks.values() if each.shape == array.shape), None)
        yield from _shifted(name, array, _padding(array, mask))
    for name, array in tensors.items():
        yield from _usual(name, array) if array.size == 1 else ()
        yield from _same_row(name, array) if name in rows and array.ndim > 1 and len(array) > 1 else ()
    for name, array in rows.items():
        if name not in masks and name not in ids and array.size > 1:
            yield of_input(name, "tokens", "is 1 everywhere", np.ones_like, "{x} = as the reference has it", value=1)
            yield of_input(name, "tokens", "is 0 everywhere", np.zeros_like, "{x} = as the reference has it", value=0)
    for name, array in rows.items():
        if name not in masks and array.shape[-1] >= _TOKENS_LEAST and np.isin(np.diff(array), (0, 1)).all():
            yield from _positions(name, {mask: each for mask, each in masks.items() if each.shape == array.shape})
    segments = {name: array for name, array in rows.items() if name not in ids and name not in masks}
    yield from _sides(ids, masks, segments)
    yield from _truncated(ids, masks)
    yield from _without_special(ids, masks, segments)


def exchanges(tensors: Tensors) -> Iterator[Transform]:
    """Yield inputs of one shape and type in each other's place."""
    for one, other in itertools.combinations(tensors, 2):
        if tensors[one].shape == tensors[other].shape and tensors[one].dtype == tensors[other].dtype:
            yield Transform(
                "input-order", (one, other), "are exchanged",
                functools.partial(_exchanged, one, other),
                f"feed by name: {{'{one}': {identifier(one)}, '{other}': {identifier(other)}}}",
            )  # fmt: skip


def _is_mask(name: str, array: np.ndarray) -> bool:
    return any(word in name.lower() for word in _MASK_WORDS) and bool(np.isin(array, (0, 1)).all())


def _is_flag(name: str, array: np.ndarray) -> bool:
    return "type" in name.lower() or "position" in name.lower() or bool(np.isin(array, (0, 1)).all())


def _masks(name: str, array: np.ndarray) -> Iterator[Transform]:
    yield of_input(name, "mask", "is inverted", lambda x: 1 - x.astype(np.int64), "{x} = 1 - {x}", value="inverted")
    for value in (1, 0):
        yield of_input(name, "mask", f"is {value} everywhere", functools.partial(np.full_like, fill_value=value),
                       "{x} = (input_ids != pad_token_id)", value=value)  # fmt: skip
    yield of_input(name, "mask", "is reversed along its last axis", lambda x: x[..., ::-1], "{x} = {x}[..., ::-1]",
                   value="reversed")  # fmt: skip
    for words, change, cure in (
        (
            "is the one to be added to scores (0 for 1, -10000 for 0)",
            lambda x: (x.astype(np.int64) - 1) * 10000,
            "{x} = {x} / 10000 + 1",
        ),
        ("is 255 for 1", lambda x: x.astype(np.int64) * 255, "{x} = {x} != 0"),
    ):
        yield of_input(name, "mask", words, change, cure)
    yield of_input(name, "mask", "shows one token more, before the others", functools.partial(_moved, step=1, filled=1),
                   "hide what is padding", shift=1, filled=1)  # fmt: skip
    for count, words in ((1, "one token"), (2, "two tokens")):
        yield of_input(name, "mask", f"hides {words} more", functools.partial(_hides_more, count=count),
                       "mask the special tokens in, too", hidden=count)  # fmt: skip
    for step in (1, -1):
        yield of_input(name, "mask", f"is moved by {step}", functools.partial(np.roll, shift=step, axis=-1),
                       f"{{x}} = np.roll({{x}}, {-step}, axis=-1)", shift=step)  # fmt: skip


def _usual(name: str, array: np.ndarray) -> Iterator[Transform]:
    """Yield other values of an input of one number: a switch, a rate of samples, a thousandth or a thousand of it."""
    given = float(array.flat[0])
    usual = (0, 1, *(RATES if given in RATES else ()), *(given * by for by in (0.001, 0.01, 0.5, 2, 100, 1000)))
    for value in dict.fromkeys(float(each) for each in usual):
        if value != given and (array.dtype.kind == "f" or (array.dtype.kind in "iu" and value == round(value))):
            yield of_input(name, "constant", f"is {value:g} instead of {given:g}",
                           functools.partial(np.full_like, fill_value=value), f"{{x}} = {given:g}",
                           value=value)  # fmt: skip


def _same_row(name: str, array: np.ndarray) -> Iterator[Transform]:
    for place, words in ((0, "first"), (len(array) - 1, "last")):
        yield of_input(name, "batch-order", f"has its {words} row in all rows",
                       functools.partial(np.take, indices=[place] * len(array), axis=0),
                       "copy every row into the batch")  # fmt: skip


def _positions(name: str, masks: Mapping[str, np.ndarray]) -> Iterator[Transform]:
    """Yield other ways to count the tokens of a row."""
    cure = f"{{x}} = np.maximum({identifier(next(iter(masks), 'mask'))}.cumsum(-1) - 1, 0)"
    yield of_input(name, "positions", "counts 0, 1, 2, ... in every row, from its padding on",
                   lambda x: np.broadcast_to(np.arange(x.shape[-1]), x.shape), cure)  # fmt: skip
    for mask in masks:
        yield Transform(
            "positions", (name,), f"counts the tokens that '{mask}' shows, from 0 on",
            functools.partial(_counted, name, mask), f"{identifier(name)} = as the reference has it",
        )  # fmt: skip
    for step in (1, 2, -1):
        yield of_input(name, "positions", f"begins {abs(step)} too {'late' if step > 0 else 'early'}",
                       functools.partial(_raised, step=step), f"{{x}} = {{x}} - ({step})", offset=step)  # fmt: skip


def _counted(name: str, mask: str, feed: Tensors) -> Tensors:
    return {name: np.maximum(feed[mask].astype(np.int64).cumsum(-1) - 1, 0)}


def _padding(array: np.ndarray, mask: np.ndarray | None) -> tuple[int, ...]:
    """Return token numbers that padding may have, the likeliest first."""
    hidden = array[mask == 0] if mask is not None else array[..., -1]
    found = [int(hidden.flat[0])] if hidden.size else []
    return tuple(dict.fromkeys([*found, 0, 1]))


def _exchanged(one: str, other: str, feed: Tensors) -> Tensors:
    return {one: feed[other], other: feed[one]}


def _moved(rows: np.ndarray, step: int, filled: int) -> np.ndarray:
    rows = np.roll(rows, step, axis=-1)
    rows[..., 0 if step > 0 else -1] = filled
    return rows


def _raised(rows: np.ndarray, step: int) -> np.ndarray:
    return np.asarray(np.maximum(rows + step, 0))


def _shifted(name: str, array: np.ndarray, pads: tuple[int, ...]) -> Iterator[Transform]:
    first = int(array.reshape(-1, array.shape[-1])[0, 0])
    for pad in pads:
        yield of_input(name, "tokens", f"lacks its first token (BOS or CLS): moved left by one, then {pad}",
                       functools.partial(_moved, step=-1, filled=pad),
                       "tokenize with special tokens (add_special_tokens=True)", shift=-1, filled=pad)  # fmt: skip
        yield of_input(name, "tokens", f"lacks its last token (EOS or SEP): {pad} in its place",
                       functools.partial(_without_last, pad=pad),
                       "tokenize with special tokens (add_special_tokens=True)", last=pad)  # fmt: skip
        yield of_input(name, "tokens", f"lacks its first and its last token (BOS, EOS): moved left, then {pad}",
                       functools.partial(_without_both, pad=pad),
                       "tokenize with special tokens (add_special_tokens=True)", shift=-1, last=pad)  # fmt: skip
    yield of_input(name, "tokens", "is moved right by one, its first token twice",
                   lambda x: np.concatenate([x[..., :1], x[..., :-1]], axis=-1),
                   "{x} = {x}[:, 1:], with its last token", shift=1)  # fmt: skip
    for value in dict.fromkeys((first, *pads)):
        yield of_input(name, "tokens", f"is moved right by one, after {value}",
                       functools.partial(_moved, step=1, filled=value),
                       "{x} = {x}[:, 1:], with its last token", shift=1, filled=value)  # fmt: skip
    for step in (-1, 1):
        yield of_input(name, "tokens", f"is moved by {step} along its last axis, around its end",
                       functools.partial(np.roll, shift=step, axis=-1),
                       f"{{x}} = np.roll({{x}}, {-step}, axis=-1)", shift=step)  # fmt: skip
        yield of_input(name, "tokens", f"has every number {abs(step)} too {'large' if step > 0 else 'small'}",
                       functools.partial(_raised, step=step), f"{{x}} = {{x}} - ({step})",
                       offset=step)  # fmt: skip
    yield of_input(name, "tokens", "is reversed along its last axis", lambda x: x[..., ::-1], "{x} = {x}[..., ::-1]")
    if array.ndim == 2 and len(array) > 1:
        yield of_input(name, "batch-order", "has its rows in reverse", lambda x: x[::-1], "{x} = {x}[::-1]")


def _without_last(rows: np.ndarray, pad: int) -> np.ndarray:
    """Return rows whose last token before the padding is padding."""
    made = rows.reshape(-1, rows.shape[-1]).copy()
    for row in made:
        filled = np.flatnonzero(row != pad)
        if filled.size:
            row[filled[-1]] = pad
    return made.reshape(rows.shape)


def _without_both(rows: np.ndarray, pad: int) -> np.ndarray:
    return _moved(_without_last(rows, pad), -1, pad)


def _hides_more(mask: np.ndarray, count: int) -> np.ndarray:
    for _ in range(count):
        mask = _without_last(mask, 0)
    return mask


def _without_special(
    ids: Mapping[str, np.ndarray], masks: Mapping[str, np.ndarray], segments: Mapping[str, np.ndarray]
) -> Iterator[Transform]:
    """Yield tokens without the first, the last, and others of their numbers, with a mask and segments that follow."""
    for (name, array), (mask_name, mask) in itertools.product(ids.items(), masks.items()):
        if array.shape != mask.shape or array.ndim != 2 or not mask.any():
            continue
        shown = np.flatnonzero(mask[0])
        ends = {int(array[0, shown[0]]), int(array[0, shown[-1]])}
        pad = _padding(array, mask)[0]
        also = tuple(each for each in segments if segments[each].shape == mask.shape)
        for names in dict.fromkeys(((name, mask_name, *also), (name, mask_name))):
            yield Transform(
                "tokens", names, f"are without the special tokens {sorted(ends)}",
                functools.partial(_dropped, names, ends, pad),
                "tokenize with special tokens (add_special_tokens=True)", {"lacks": sorted(ends)},
            )  # fmt: skip


def _dropped(names: tuple[str, ...], ends: set[int], pad: int, feed: Tensors) -> Tensors:
    """Return rows without some tokens, what is behind them moved up; inputs beyond tokens and mask become 0."""
    ids, mask = names[:2]
    made = {name: np.full_like(feed[name], pad if name == ids else 0) for name in names}
    for at, row in enumerate(feed[ids]):
        keep = (feed[mask][at] != 0) & ~np.isin(row, list(ends))
        made[ids][at, : keep.sum()], made[mask][at, : keep.sum()] = row[keep], 1
    return made


def _sides(
    ids: Mapping[str, np.ndarray], masks: Mapping[str, np.ndarray], segments: Mapping[str, np.ndarray]
) -> Iterator[Transform]:
    """Yield padding on the other side, of tokens and of their mask, or of the tokens alone."""
    for (name, array), (mask_name, mask) in itertools.product(ids.items(), masks.items()):
        if array.shape != mask.shape or array.ndim != 2 or mask.all():
            continue

        def apply(feed: Tensors, names: tuple[str, ...], by: str = mask_name) -> Tensors:
            return {each: _on_the_other_side(feed[each], feed[by]) for each in names}

        left = bool(mask[:, -1].min() == 0)
        side = "left" if left else "right"
        also = tuple(each for each in segments if segments[each].shape == mask.shape)
        for names in dict.fromkeys(((name, mask_name, *also), (name, mask_name), (name,))):
            words = f"{'are' if len(names) > 1 else 'is'} padded on the {side}" + (
                "" if len(names) > 1 else ", and its mask is not"
            )
            yield Transform("padding-side", names, words, functools.partial(apply, names=names),
                            f"tokenizer.padding_side = '{'right' if left else 'left'}'", {"side": side})  # fmt: skip


def _truncated(ids: Mapping[str, np.ndarray], masks: Mapping[str, np.ndarray]) -> Iterator[Transform]:
    """Yield rows that end at another largest length, with their last token (SEP, EOS) or without."""
    for (name, array), (mask_name, mask) in itertools.product(ids.items(), masks.items()):
        longest = int(mask.sum(-1).max()) if array.ndim == 2 and array.shape == mask.shape else 0
        pad = _padding(array, mask)[0]
        for length in (n for n in _lengths(longest) if n > 1):
            for ends in (True, False):
                kept = "its last token kept" if ends else "its last token cut off, too"
                shorten = functools.partial(_cut_to, name, mask_name, pad, length, ends)
                yield Transform("truncated", (name, mask_name), f"are cut to {length} tokens ({kept})", shorten,
                                "tokenize with the max_length of the reference", {"length": length})  # fmt: skip


def _lengths(longest: int) -> Iterator[int]:
    """Yield lengths at which tokenizers cut rows, below the longest one: powers of two, and a few less."""
    yield from (1 << power for power in range(longest.bit_length(), 2, -1) if 1 << power < longest)
    yield from (n for n in range(longest - 1, max(longest - 9, 1), -1) if n & (n - 1) or n < 8)


def _cut_to(ids: str, mask: str, pad: int, length: int, ends: bool, feed: Tensors) -> Tensors:
    """Return rows and a mask that shows so many tokens at most, the last one with the old end or without."""
    rows, shows = feed[ids].copy(), feed[mask].copy()
    for row, shown in zip(rows, shows, strict=True):
        places = np.flatnonzero(shown)
        if ends and places.size > length:
            row[places[length - 1]] = row[places[-1]]
        row[places[length:]], shown[places[length:]] = pad, 0
    return {ids: rows, mask: shows}


def _on_the_other_side(rows: np.ndarray, mask: np.ndarray) -> np.ndarray:
    moved = [np.roll(row, _hidden(hides), axis=-1) for row, hides in zip(rows, mask, strict=True)]
    return np.stack(moved)


def _hidden(mask: np.ndarray) -> int:
    """Return by how much a row moves: padding behind it comes before it, and the other way round."""
    count = int((mask == 0).sum())
    return count if mask[-1] == 0 else -count

"""Reading an engine's options: strings in, typed values out, every wrong word answered with the right ones.

The table of known words is the engine's own `Engine.options`, so help text and parser cannot disagree. A known word
that ends in ``.KEY`` stands for a family (``config.KEY`` accepts ``config.anything``).
"""

from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

from tensortriage.errors import UsageError, did_you_mean
from tensortriage.values.dtype import Precision

T = TypeVar("T")
_FAMILY = ".KEY"
_BOOLEANS = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}


class Options:
    """The options of one compile, checked against the words an engine knows; made by `read_options`."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = given

    def __contains__(self, key: str) -> bool:
        return key in self._given

    def text(self, key: str, default: str = "") -> str:
        """Return the value as written."""
        return self._given.get(key, default)

    def choice(self, key: str, choices: Mapping[str, T], default: T) -> T:
        """Return the value of the word given for `key`; words are case-insensitive.

        Raises:
            UsageError: For another word (slug ``engine-option-value``).
        """
        if key not in self._given:
            return default
        word = self._given[key].strip().lower()
        if word not in choices:
            raise _bad_value(key, self._given[key], "one of " + ", ".join(choices))
        return choices[word]

    def word(self, key: str, words: Sequence[str], default: str = "") -> str:
        """Return the given one of some words, in any case, or the default: the first unless another is named."""
        return self.choice(key, {word.lower(): word for word in words}, default or words[0])

    def integer(self, key: str, default: int, *, minimum: int = 0) -> int:
        """Return a whole number of at least `minimum`.

        Raises:
            UsageError: For anything else (slug ``engine-option-value``).
        """
        if key not in self._given:
            return default
        word = self._given[key].strip()
        if not word.isascii() or not word.isdigit() or len(word) > 9 or int(word) < minimum:
            raise _bad_value(key, self._given[key], f"a whole number from {minimum}")
        return int(word)

    def boolean(self, key: str, *, default: bool) -> bool:
        """Return a truth value; ``true 1 yes on`` and ``false 0 no off`` are understood.

        Raises:
            UsageError: For another word (slug ``engine-option-value``).
        """
        if key not in self._given:
            return default
        word = self._given[key].strip().lower()
        if word not in _BOOLEANS:
            raise _bad_value(key, self._given[key], "true or false")
        return _BOOLEANS[word]

    def precision(self, key: str, allowed: Collection[Precision], default: Precision | None = None) -> Precision:
        """Return a precision out of `allowed`.

        Raises:
            UsageError: For an unknown (slug ``precision-unknown``) or disallowed word (``engine-option-value``), and
                when the option is not given and has no default (``engine-option-required``).
        """
        words = ", ".join(p.value for p in allowed)
        if key not in self._given:
            if default is None:
                raise UsageError(
                    f"option '{key}' is required",
                    slug="engine-option-required",
                    cure=f"add {key}=VALUE, VALUE being one of {words}",
                )
            return default
        precision = Precision.parse(self._given[key])
        if precision not in allowed:
            raise _bad_value(key, self._given[key], f"one of {words}")
        return precision

    def words(self, key: str) -> tuple[str, ...]:
        """Return the words of a list written ``A+B+C``, without empty ones."""
        return tuple(word.strip() for word in self._given.get(key, "").split("+") if word.strip())

    def family(self, prefix: str) -> Mapping[str, str]:
        """Return ``{KEY: value}`` of all options written ``prefix.KEY=value``."""
        head = prefix + "."
        return {key.removeprefix(head): value for key, value in self._given.items() if key.startswith(head)}


def read_options(given: Mapping[str, str], known: Mapping[str, str]) -> Options:
    """Return typed access to `given` after refusing every word that is not in `known`.

    Args:
        given: Options as the user wrote them.
        known: The words an engine understands, each with its line of help (`Engine.options`).

    Raises:
        UsageError: For an unknown word (slug ``engine-option-unknown``), with the nearest known one.
    """
    families = tuple(word.removesuffix("KEY") for word in known if word.endswith(_FAMILY))
    for word in given:
        in_family = any(word.startswith(family) and len(word) > len(family) for family in families)
        if not in_family and word not in known:
            raise _unknown(word, tuple(known))
    return Options(dict(given))


def _unknown(word: str, known: tuple[str, ...]) -> UsageError:
    listed = f"known options: {', '.join(known)}" if known else "this engine has no options"
    return UsageError(
        f"'{word}' is not an option of this engine",
        slug="engine-option-unknown",
        cure=f"{did_you_mean(word, known)} {listed}".lstrip(),
    )


def _bad_value(key: str, value: str, wanted: str) -> UsageError:
    return UsageError(f"option {key}={value} is not understood", slug="engine-option-value", cure=f"give {wanted}")

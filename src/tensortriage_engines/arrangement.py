"""Matches the tensors of a given file with the model's, and finds the order of their axes there.

Files that other tools converted keep names, order and layout only as their converter chose. Tensors are matched by
name, then by type and shape, then by place; axes by the habits of converters, and by every order where none of these
fits. Nothing is reshaped but by axes of one entry. Where more than one way is left, a caller with results of the model
tries them (`tensortriage.runs.analyses.given_layouts`), or the user names one: ``layout=`` and ``names=``.
"""

import dataclasses
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tensortriage.engines.sdk import BuildFailed, DType, IsolatedSession, UsageError, ValueSpec
from tensortriage_engines.axis_orders import Axes, alike, orders, unequal, with_ones

LAYOUT, NAMES = "layout", "names"
ARRANGEMENT_OPTIONS: Mapping[str, str] = {
    LAYOUT: "order of axes in a given file: nchw or nhwc of all tensors, or NAME:nhwc or NAME:0231, joined with + "
    "(default: found by shapes, else by trying)",
    NAMES: "names of tensors in a given file: NAME:NAME_IN_FILE, joined with + (default: found the same way)",
}
"""Options of engines that run given files."""

MOST = 24
"""Ways that are tried at most: all orders of four axes, or of four tensors."""
_MOST_UNNAMED = 6
_LETTERS = {3: "ncw", 4: "nchw", 5: "ncdhw"}
_ADDED = re.compile(r"^(?:serving_default_|wa(?=/))|:\d+$")
"""Additions of converters to a name: TensorFlow's signatures and places of results, onnx2tf before a slash."""


@dataclasses.dataclass(frozen=True, slots=True)
class Placed:
    """A tensor of the model as the file holds it.

    Attributes:
        spec: The model's declaration.
        held: The file's.
        axes: The model's axes in the order of the file; None where its rank is not known, and it stays as it is.
    """

    spec: ValueSpec
    held: ValueSpec
    axes: Axes | None

    def fed(self, array: np.ndarray) -> np.ndarray:
        """Return an array of the model's as the file takes it."""
        moved = array if self.axes is None else array.transpose(self.axes)
        dtype = self.held.dtype
        if dtype is not None and not dtype.is_float and moved.dtype.kind == "f":
            moved = self._whole(moved, dtype)
        return np.ascontiguousarray(moved).reshape(with_ones(moved.shape, self.held.shape))

    def _whole(self, array: np.ndarray, dtype: DType) -> np.ndarray:
        """Return numbers in the integers that the file takes.

        Raises:
            UsageError: When they are none (``file-input-type``).
        """
        whole = array.astype(dtype.numpy)
        if np.array_equal(whole, array):
            return whole
        raise UsageError(
            f"the file takes '{self.spec.name}' as {dtype.label}, but the data are not whole numbers of that type: "
            f"the file prepares its input itself",
            slug="file-input-type",
            cure="give a file without that preparation, or a model that takes the same data",
        )

    def given(self, array: np.ndarray) -> np.ndarray:
        """Return a result of the file's in the axes and the type of the model; in its own where it has others."""
        if self.axes is not None:
            moved = [self.spec.shape[axis] for axis in self.axes] if self.spec.shape is not None else None
            array = array.reshape(with_ones(array.shape, moved))
            array = array.transpose(np.argsort(self.axes)) if array.ndim == len(self.axes) else array
        declared, own = self.spec.dtype, DType.from_numpy(array.dtype)
        alike = declared is not None and DType.STRING not in (declared, own) and declared.is_float is own.is_float
        return array.astype(declared.numpy) if declared is not None and alike and own is not declared else array

    @property
    def order(self) -> str:
        """The order of axes as the option states it."""
        letters = _LETTERS.get(len(self.axes or ()), "0123456789")
        return "".join(letters[axis] for axis in self.axes or ())

    @property
    def moved(self) -> bool:
        """Whether numbers lie in another order in the file."""
        order = unequal(self.axes or (), self.spec.shape)
        return order != tuple(sorted(order))


@dataclasses.dataclass(frozen=True, slots=True)
class Arrangement:
    """One way in which a file may hold a model's inputs and outputs.

    Attributes:
        inputs: Inputs of the file.
        outputs: Outputs of the model.
        options: Options that declare it: for tensors whose layout differs in the file, and for those whose layout is
            ambiguous.
    """

    inputs: tuple[Placed, ...]
    outputs: tuple[Placed, ...]
    options: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def feed(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return a feed of the model's as the file takes it, by the file's names."""
        return {each.held.name: each.fed(arrays[each.spec.name]) for each in self.inputs}

    def results(self, found: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return results of the file by the model's names; those that are missing are left out."""
        return {each.spec.name: each.given(found[each.held.name]) for each in self.outputs if each.held.name in found}

    @property
    def evident(self) -> bool:
        """Whether every tensor has its name and its shape in the file."""
        return all(
            _plain(each.spec.name) == _plain(each.held.name) and not each.moved
            for each in (*self.inputs, *self.outputs)
        )

    @property
    def words(self) -> str:
        """Differences from the model; empty for none."""
        clauses = []
        for each in (*self.inputs, *self.outputs):
            called = f" as '{each.held.name}'" if _plain(each.spec.name) != _plain(each.held.name) else ""
            order = f" with axes {each.order}" if each.moved else ""
            clauses += [f"'{each.spec.name}'{called}{order}"] if called or order else []
        return ", ".join(clauses)


@dataclasses.dataclass(frozen=True, slots=True)
class Arrangements:
    """The ways in which a given file may hold a model, at least one; it runs in the only one there is.

    Attributes:
        ways: The most usual first.
    """

    ways: tuple[Arrangement, ...]

    def feed(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """See `Arrangement.feed`.

        Raises:
            UsageError: When there are several ways (``layout-unknown``).
        """
        return only(self.ways).feed(arrays)

    def results(self, found: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """See `Arrangement.results`; raises as `feed` does."""
        return only(self.ways).results(found)


def ways_of(session: IsolatedSession) -> tuple[Arrangement, ...]:
    """Return the ways in which the file of a session may hold the model; empty where none was given."""
    return session.held.ways if isinstance(session.held, Arrangements) else ()


def arrangements(
    declared: tuple[Sequence[ValueSpec], Sequence[ValueSpec]],
    held: tuple[Sequence[ValueSpec], Sequence[ValueSpec]],
    options: Mapping[str, str],
) -> tuple[Arrangement, ...]:
    """Return the ways in which a file may hold a model, the most usual first, at least one.

    Args:
        declared: Inputs and outputs of the model.
        held: Tensors of the file.
        options: ``layout`` and ``names``, where the user gives them.

    Raises:
        BuildFailed: When the file holds tensors that are none of the model's in any order (``file-mismatch``).
        UsageError: When options name missing tensors, or the ways are too many to be tried.
    """
    request = _Told(options, [spec for side in declared for spec in side])
    sides = [
        list(itertools.islice(_ways_of_side(specs, rows, request, outputs=bool(number)), MOST + 1))
        for number, (specs, rows) in enumerate(zip(declared, held, strict=True))
    ]
    for what, found, specs, rows in zip(("inputs", "outputs"), sides, declared, held, strict=True):
        if not found:
            raise _mismatch(what, specs, rows)
    ways = [Arrangement(tuple(ins), tuple(outs)) for ins, outs in itertools.product(*sides)]
    if len(ways) > MOST:
        raise UsageError(
            f"inputs and outputs of the file can be those of the model in more than {MOST} ways",
            slug="layout-unknown",
            cure="name them: " + _options_words(_said(ways[0], ways)),
        )
    return tuple(dataclasses.replace(way, options=_said(way, ways)) for way in ways)


def only(ways: Sequence[Arrangement]) -> Arrangement:
    """Return the only way, or the one that names and shapes make evident.

    Raises:
        UsageError: When there are several (``layout-unknown``).
    """
    if len(ways) == 1 or ways[0].evident:
        return ways[0]
    shown = " or ".join(_options_words(way.options) for way in ways[:3])
    raise UsageError(
        f"inputs and outputs of the file can be those of the model in {len(ways)} ways",
        slug="layout-unknown",
        cure=f"name them: {shown}; triage run and diagnose find out by the reference's results",
    )


class _Told:
    """The user's statements about a file."""

    def __init__(self, options: Mapping[str, str], specs: Sequence[ValueSpec]) -> None:
        self._orders: dict[str, str] = {}
        self._every: dict[int, str] = {}
        self._names: dict[str, str] = {}
        known = [spec.name for spec in specs]
        for entry in filter(None, options.get(LAYOUT, "").split("+")):
            name, _, order = entry.rpartition(":")
            if name and name not in known:
                raise _no_such(LAYOUT, entry, known)
            if name:
                self._orders[name] = order
            else:
                self._every[len(order)] = order
        for entry in filter(None, options.get(NAMES, "").split("+")):
            named = next((each for each in known if entry.startswith(f"{each}:")), None)
            if named is None:
                raise _no_such(NAMES, entry, known)
            self._names[named] = entry[len(named) + 1 :]

    def held_as(self, name: str) -> str | None:
        """Return the file's name of a tensor; None where it is unknown."""
        return self._names.get(name)

    def ways(self, spec: ValueSpec, held: ValueSpec) -> tuple[Axes | None, ...]:
        """Return `orders`, reduced to one if the user named it."""
        rank = len(spec.shape or ())
        order = self._orders.get(spec.name, self._every.get(rank))
        if order is None or spec.shape is None:
            return orders(spec.shape, held.shape)
        letters = _LETTERS.get(rank, "") if order.isalpha() else "0123456789"[:rank]
        if sorted(order.lower()) != sorted(letters):
            raise UsageError(
                f"'{order}' is not an order of the {rank} axes of '{spec.name}'",
                slug="engine-option-value",
                cure=f"give layout= with {_LETTERS.get(rank, '0123456789'[:rank])} in another order, or digits",
            )
        axes = tuple(letters.index(letter) for letter in order.lower())
        moved = [spec.shape[axis] for axis in axes]
        fitting = held.shape is None or alike(moved, held.shape)
        return (axes,) if fitting else ()


def _ways_of_side(
    specs: Sequence[ValueSpec], rows: Sequence[ValueSpec], told: _Told, *, outputs: bool
) -> Iterator[list[Placed]]:
    """Yield the ways of one side: each input of the file is one of the model's, each output of the model the file's."""
    every = itertools.product(specs, rows)
    fitting = {
        (spec.name, row.name): told.ways(spec, row) for spec, row in every if _types_alike(spec, row, outputs=outputs)
    }
    by_name, held = {spec.name: spec for spec in specs}, {row.name: row for row in rows}
    named = _named(fitting, told)
    open_specs = [name for name in by_name if name not in named]
    open_rows = [name for name in held if name not in named.values()]
    seekers, offered = (open_specs, open_rows) if outputs else (open_rows, open_specs)
    few = max(len(seekers), len(offered)) <= _MOST_UNNAMED
    for order in itertools.permutations(offered, len(seekers)) if few else [tuple(offered)]:
        partners = zip(seekers, order, strict=False) if outputs else zip(order, seekers, strict=False)
        found = {**named, **dict(partners)}
        if len(found) < len(specs if outputs else rows):
            continue
        pairs = [(name, found[name]) for name in by_name if name in found]
        for axes in itertools.product(*(fitting.get(pair, ()) for pair in pairs)):
            yield [Placed(by_name[n], held[row], each) for (n, row), each in zip(pairs, axes, strict=True)]


def _named(fitting: Mapping[tuple[str, str], Sequence[Axes | None]], told: _Told) -> dict[str, str]:
    """Return the file's names of tensors that the user maps, or that keep their name there."""
    found: dict[str, str] = {}
    for (name, row), ways in fitting.items():
        wanted = told.held_as(name)
        same = row == wanted if wanted is not None else _plain(row) == _plain(name)
        if same and ways and row not in found.values():
            found.setdefault(name, row)
    return found


def _said(way: Arrangement, every: Sequence[Arrangement]) -> dict[str, str]:
    """Return the options that distinguish a way from all others."""
    layout, names = [], []
    for number, each in enumerate((*way.inputs, *way.outputs)):
        others = [(*other.inputs, *other.outputs)[number] for other in every]
        if any(other.spec.name != each.spec.name or other.held.name != each.held.name for other in others):
            names.append(f"{each.spec.name}:{each.held.name}")
        if each.moved or any(other.spec.name == each.spec.name and other.axes != each.axes for other in others):
            layout.append(f"{each.spec.name}:{each.order}")
    return {key: "+".join(entries) for key, entries in ((LAYOUT, layout), (NAMES, names)) if entries}


def _options_words(options: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in options.items())


def _plain(name: str) -> str:
    while (shorter := _ADDED.sub("", name).strip("/")) != name:
        name = shorter
    return name


def _types_alike(spec: ValueSpec, row: ValueSpec, *, outputs: bool) -> bool:
    """Return whether types are one but for their width; files may take images as they are stored, in 8 bits."""
    own, held = spec.dtype, row.dtype
    return own is None or held is None or own.is_float is held.is_float or (not outputs and held.bits == 8)


def _mismatch(what: str, specs: Sequence[ValueSpec], rows: Sequence[ValueSpec]) -> BuildFailed:
    own, theirs = (
        ", ".join(f"'{spec.name}' {list(spec.shape) if spec.shape is not None else '?'}" for spec in side) or "none"
        for side in (rows, specs)
    )
    return BuildFailed(
        f"the file has the {what} {own}, which match the model's in no order of axes: {theirs}",
        slug="file-mismatch",
        cure="give the file that was converted from this model, for these shapes; layout= and names= map its inputs "
        "and outputs",
    )


def _no_such(key: str, entry: str, known: Sequence[str]) -> UsageError:
    return UsageError(
        f"option {key}={entry} is not understood",
        slug="engine-option-value",
        cure=f"begin with an input or output of the model: {', '.join(known[:10])}",
    )

"""The values of a model that number formats cannot represent, from one healthy run and independent of a target.

Every tensor of the run, and every constant, is compared with every format: is it beyond the largest number, how much of
it lies below the normal numbers, does it hold whole numbers that the format skips? Every sum is looked at as well, for
it may leave the format on the way to a harmless result (`tensortriage.runs.analyses.sums`): its terms may add up beyond
the largest number, or cancel so far that their rounding is as large as the result.

Diagnosis, precision search and conversion use the same scan, so this is below all of them. Findings are of two kinds:
impossible in the format (the number is not there), and possibly wrong, depending on how an engine adds up.
"""

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from tensortriage.compare.metrics.blocks import BLOCK, inner_products
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.ir.graph import Node
from tensortriage.model.model import Model
from tensortriage.runs.analyses.merged_integers import merged_integers
from tensortriage.runs.analyses.sums.sum_terms import Terms, adds_up, terms_of
from tensortriage.values.dtype import DType, Precision
from tensortriage.values.store import TensorStore
from tensortriage.values.text import error_size, magnitude, percent, times

FORMATS = (Precision.FP16, Precision.BF16, Precision.FP8E4M3, Precision.FP8E5M2)
"""Formats that tensors are compared with unless another format is requested."""

USUAL = (Precision.FP16, Precision.BF16)
"""Formats that every document reports, whatever the target's is."""

SLUGS = ("beyond-range", "weight-beyond-range", "sum-beyond-range", "subnormal", "weight-subnormal", "integers",
         "cancellation")  # fmt: skip
"""Every kind of finding; ``docs/ranges.md`` explains each."""

_WIDE = (DType.FLOAT, DType.DOUBLE, DType.BFLOAT16)
_SQUARE_FITS = 1e18
"""Squares of numbers up to this are finite in float32, and so is the sum of any that memory holds. Where one is larger
no rounding of small numbers is anything to the tensor."""


@frozen_dataclass
class FormatMisfit:
    """One thing that a format cannot hold, or may not.

    Attributes:
        slug: Kind, one of `SLUGS`.
        format: Word of the format, e.g. ``fp16``.
        cannot: True when it is so on every engine; False when it depends on how an engine adds up, or on the rest of
            the model whether it matters.
        share: Share of the tensor's elements concerned; 1 for a finding about the whole.
        words: The misfit, for a sentence that begins with the name of the op or constant.
    """

    slug: str
    format: str
    cannot: bool
    share: float
    words: str


@frozen_dataclass
class RangeRow:
    """One tensor of the reference run, or one constant.

    Attributes:
        node: The node that makes it, or the first that uses the constant.
        op_type: That node's operator.
        constant: Whether it is a constant of the model.
        max_abs: Largest finite magnitude.
        min_abs: Smallest magnitude that is not zero; 0 when there is none.
        sum_bound: Largest sum of magnitudes of the terms of one element; None where nothing is summed.
        condition: RMS of the terms' root sum of squares over the RMS of their sums, so the factor by which rounding
            errors grow; None where nothing is summed.
        misfits: Its misfits, by format.
    """

    value: str
    node: str
    op_type: str
    constant: bool
    max_abs: float
    min_abs: float
    sum_bound: float | None = None
    condition: float | None = None
    misfits: tuple[FormatMisfit, ...] = ()

    def misfits_in(self, precision: Precision) -> tuple[FormatMisfit, ...]:
        """Return the values that one format cannot hold."""
        return tuple(misfit for misfit in self.misfits if misfit.format == precision.value)


class RangeScan:
    """Holds tensors of one run, as they are computed, and every constant against number formats.

    Only the tensors that a later sum adds up are held in memory.

    Args:
        model: The model.
        feed: The inputs of the run.
        formats: Formats of interest; nothing is found for those as wide as float32.
        sums: Whether to look into sums as well.
        beyond: Bounds of sums below this need not be known; a row may then have none.
    """

    def __init__(
        self,
        model: Model,
        feed: Mapping[str, np.ndarray],
        *,
        formats: Sequence[Precision] = FORMATS,
        sums: bool = True,
        beyond: float = 0.0,
    ) -> None:
        self._model, self._feed, self._formats, self._beyond = model, feed, formats, beyond
        self._found: dict[str, RangeRow] = {}
        self._kept: dict[str, np.ndarray] = {}
        self._readers: dict[str, int] = {}
        self._sums = {node.name for node in model.graph.nodes if sums and adds_up(node)}
        for node in model.graph.nodes:
            if node.name in self._sums:
                for name in dict.fromkeys(node.inputs):
                    self._readers[name] = self._readers.get(name, 0) + 1
        self.taken: set[str] = set()

    def take(self, name: str, array: np.ndarray) -> None:
        """Look at one value of the run, after those that its node reads.

        Args:
            name: Its name.
            array: Array of any type and shape; it is not changed.
        """
        self.taken.add(name)
        node, graph = self._model.graph.producer(name), self._model.graph
        if node is None:
            return
        wide, terms = DType.from_numpy(array.dtype) in _WIDE, None
        if node.name in self._sums and name == node.outputs[0]:
            if wide:
                operands = [self._operand(each) for each in node.inputs]
                terms = terms_of(node, operands, array, version=self._model.opset, beyond=self._beyond)
            for each in dict.fromkeys(node.inputs):
                self._readers[each] -= 1
                if not self._readers[each]:
                    self._kept.pop(each, None)
        if self._readers.get(name):
            self._kept[name] = array
        if wide and name not in graph.constants:
            self._found[name] = _row(name, node, array, self._formats, terms=terms)

    def _operand(self, name: str) -> np.ndarray | None:
        if name in self._kept:
            return self._kept[name]
        return self._model.graph.weight(name) if name in self._model.graph.constants else self._feed.get(name)

    def rows(self) -> tuple[RangeRow, ...]:
        """Return one row per floating-point value and constant in topological order, constants before their users."""
        graph, seen, rows = self._model.graph, set[str](), list[RangeRow]()
        for node in graph.nodes:
            for name in node.inputs:
                if name in graph.constants and name not in seen and graph.constants[name].dtype in _WIDE:
                    seen.add(name)
                    rows.append(_row(name, node, graph.weight(name), self._formats, constant=True))
            rows += [self._found[name] for name in node.outputs if name in self._found]
        return tuple(rows)


def range_scan(
    model: Model,
    golden: TensorStore,
    feed: Mapping[str, np.ndarray],
    *,
    formats: Sequence[Precision] = FORMATS,
    sums: bool = True,
    beyond: float = 0.0,
) -> tuple[RangeRow, ...]:
    """Compare every tensor of one stored run, and every constant, with number formats; see `RangeScan`.

    Tensors are read one node at a time. Cost: a few passes over every tensor, and as many multiplications as the model
    makes unless bounds of sums are ``beyond`` what they may reach.

    Args:
        model: The model.
        golden: The reference's values; missing ones are passed over.
        feed: The inputs of the run.
        formats: As there.
        sums: As there.
        beyond: As there.
    """
    scan = RangeScan(model, feed, formats=formats, sums=sums, beyond=beyond)
    for node in model.graph.nodes:
        for name in node.outputs:
            if name in golden:
                scan.take(name, np.asarray(golden[name]))
    return scan.rows()


def largest_sum(precision: Precision) -> float:
    """Return the largest sum that a format holds where engines add up in it; inf for other formats.

    fp8 is a format of operands: every engine known adds their products up in a wider one.
    """
    return float(precision.dtype.finfo.max) if precision.dtype.bits >= 16 else math.inf


def _row(
    name: str,
    node: Node,
    array: np.ndarray,
    formats: Sequence[Precision],
    *,
    constant: bool = False,
    terms: Terms | None = None,
) -> RangeRow:
    wide = array.astype(np.float64 if array.dtype.itemsize > 4 else np.float32, copy=False)
    size = _extent(wide.ravel("K"))
    magnitudes = functools.cache(lambda: _finite_magnitudes(wide))
    found: list[FormatMisfit] = []
    for precision in formats:
        if precision.dtype.is_float and precision.dtype.bits < 32:
            found += _held(magnitudes, size, precision, constant=constant)
            found += [] if terms is None else _summed(terms, size.largest, precision)
    bound, condition = (None, None) if terms is None else (terms.bound, terms.condition)
    known = (name, node.name, node.op_type, constant, size.largest, size.smallest)
    return RangeRow(*known, bound, condition, tuple(found))


@frozen_dataclass
class _Extent:
    """The largest and smallest magnitudes of a tensor; most tensors need no more.

    Attributes:
        count: How many there are.
        largest: Largest finite magnitude.
        smallest: Smallest that is not zero; 0 when there is none.
        root: At most the Euclidean norm of the finite ones; inf where squares may not fit.
    """

    count: int
    largest: float
    smallest: float
    root: float


def _extent(flat: np.ndarray) -> _Extent:
    """Return how large float32 or float64 numbers along one axis are, block by block, which stay in the cache."""
    largest, smallest, squares, scratch = 0.0, math.inf, 0.0, np.empty(min(BLOCK, flat.size), flat.dtype)
    for start in range(0, flat.size, BLOCK):
        block = flat[start : start + BLOCK]
        block = np.abs(block, out=scratch[: block.size])
        most = float(block.max())
        if not math.isfinite(most):  # an infinity fits every format
            block = block[np.isfinite(block)]
            most = float(block.max(initial=0.0))
        least = float(block.min(initial=math.inf))
        if least == 0.0 < most:
            least = float(block[block > 0].min())
        largest, smallest = max(largest, most), min(smallest, least or math.inf)
        squares += float(inner_products(block, block)) if most < _SQUARE_FITS else math.inf
    return _Extent(flat.size, largest, smallest if math.isfinite(smallest) else 0.0, math.sqrt(squares))


def _finite_magnitudes(wide: np.ndarray) -> np.ndarray:
    magnitudes: np.ndarray = np.abs(wide).reshape(-1)
    finite = np.isfinite(magnitudes)
    return magnitudes if finite.all() else magnitudes[finite]


def _held(
    magnitudes: Callable[[], np.ndarray], size: _Extent, precision: Precision, *, constant: bool
) -> Iterator[FormatMisfit]:
    """Yield the misfits of a tensor in a format; its finite magnitudes are computed on request."""
    info, word, what = precision.dtype.finfo, precision.value, "weight-" if constant else ""
    top, normal, unit = float(info.max), float(info.smallest_normal), float(info.eps) / 2.0
    if size.largest > top * (1.0 + unit / 2.0):  # half a step beyond the largest number rounds to infinity
        share = float((magnitudes() > top).mean())
        words = f"reaches {magnitude(size.largest)}, beyond {word}'s largest number {magnitude(top, 6)}"
        yield FormatMisfit(f"{what}beyond-range", word, True, share, words)
    # Below the normal numbers no rounding changes more than half the smallest of all numbers.
    most = math.sqrt(size.count) * float(info.smallest_subnormal) / 2.0
    if 0.0 < size.smallest < normal and most >= unit * size.root:
        held = magnitudes()
        tiny = held[(held < normal) & (held > 0)].astype(np.float32)
        kept = tiny.astype(precision.dtype.numpy).astype(np.float64)
        energy = float(np.square(held, dtype=np.float64).sum())
        loss = math.sqrt(float(np.square(tiny - kept).sum()) / energy) if energy else 0.0
        if loss > unit:  # normal numbers cost no more than half a step, whatever their size
            share, lost = tiny.size / int(np.count_nonzero(held)), float((kept == 0).mean())
            words = (
                f"is below {word}'s normal numbers ({magnitude(normal)}) in {percent(share)} of its non-zero "
                f"elements, which leaves an error of {error_size(loss)} of the tensor"
            )
            gone = bool(lost == 1.0 and share == 1.0)
            yield FormatMisfit(f"{what}subnormal", word, gone, share, "becomes zero altogether" if gone else words)
    if size.largest > 2.0 ** (int(info.nmant) + 1) and (whole := merged_integers(magnitudes(), precision)):
        words = (
            f"holds whole numbers up to {magnitude(size.largest, 6)}; {word} has every one only up to "
            f"{magnitude(whole.exact, 6)}, changes {percent(whole.share)} of these and makes different ones equal"
        )
        yield FormatMisfit("integers", word, True, whole.share, words)


def _summed(terms: Terms, largest: float, precision: Precision) -> Iterator[FormatMisfit]:
    """Yield the misfits of a sum in a format that can hold its result."""
    info, word = precision.dtype.finfo, precision.value
    top, unit = float(info.max), float(info.eps) / 2.0
    if largest_sum(precision) < math.inf and terms.bound is not None and largest <= top < terms.bound:
        words = (
            f"has sums whose terms add up to {magnitude(terms.bound)}, beyond {word}'s largest number "
            f"{magnitude(top, 6)}, if they are added up in {word}"
        )
        yield FormatMisfit("sum-beyond-range", word, False, 1.0, words)
    if terms.condition is not None and terms.condition * unit >= 1.0:
        words = (
            f"cancels: its terms are {times(terms.condition)} larger than the result, and rounding them to "
            f"{word} costs {times(terms.condition * unit)} the result"
        )
        yield FormatMisfit("cancellation", word, math.isfinite(terms.condition), 1.0, words)


RANGES_FORMAT = "tensortriage.ranges/1"
MOST_ROWS = 200


@frozen_dataclass
class Ranges:
    """The content of ``ranges.json``: tensors that formats cannot hold.

    Attributes:
        precision: The target's format, whose misfits come first.
        feed: The feed of the run.
        tensors: How many tensors and constants were looked at.
        rows: Those with misfits in the target's format, then those that fp16 or bf16 cannot hold; at most `MOST_ROWS`.
        format: Version of this file format.
    """

    precision: str = ""
    feed: str = ""
    tensors: int = 0
    rows: tuple[RangeRow, ...] = ()
    format: str = RANGES_FORMAT

    @classmethod
    def of(cls, rows: Sequence[RangeRow], precision: Precision, feed: str) -> "Ranges":
        """Return the rows to show, in topological order within each group."""
        own = [row for row in rows if row.misfits_in(precision)]
        usual = [precision.value for precision in USUAL]
        rest = [row for row in rows if row not in own and any(m.cannot and m.format in usual for m in row.misfits)]
        return cls(precision.value, feed, len(rows), tuple([*own, *rest][:MOST_ROWS]))

"""TensorRT's choices while it builds, and making it repeat them.

Two ways, by the release's abilities. 8.5 to 10.x ask an ``IAlgorithmSelector`` about every layer: it receives all
candidates, and may answer with one. From 10.8 on (and alone in 11.x) there is the editable timing cache: the builder's
verbose log has the key of the cache under which a layer was timed and the tactics that were tried, and the entry of
that key decides the next build. Both give rows of the same fields (`tensortriage.engines.base.Choice`), and take them
back.

A layer that TensorRT compiles as a whole (``ForeignNode``) is one row: neither way shows Myelin's choices inside.
"""

from __future__ import annotations

import json
import re
from typing import Any, Dict, List, Mapping, Optional, Sequence

from tensortriage_engines.tensorrt.worker.dtypes import word
from tensortriage_worker.adapter import AdapterError, AdapterFailure

FORMAT = "tensortriage.tactics/1"
PINNED_MILLISECONDS = 1.0
"""Time that an edited entry of a timing cache claims; any finite number does, there is one entry a key."""
_OP = re.compile(r"Autotuning op (.*?)\(key: (0x[0-9a-fA-F]+)\):?\s*(?:\[ONNX Layer: .*)?$")
_COST = r"([-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)"
_HASH = re.compile("0x[0-9a-fA-F]+")
_SELECTED = re.compile(rf"selected tactic is \(tactic hash, cost\(in ms\)\):\s*(0x[0-9a-fA-F]+)\s*,\s*{_COST}")
_MASK = (1 << 64) - 1
Row = Dict[str, Any]


class Tactics:
    """The tactics of one build.

    Args:
        trt: The TensorRT module.
        options: ``record_tactics`` (``true``) and ``load_tactics`` (a file of choices); without either this does
            nothing.

    Raises:
        AdapterError: When the file is none of choices.
    """

    def __init__(self, trt: Any, options: Mapping[str, str]) -> None:
        self._trt = trt
        self._wanted = read_choices(options["load_tactics"]) if "load_tactics" in options else []
        self._active = options.get("record_tactics") == "true" or "load_tactics" in options
        self._selector = None  # type: Any
        self._cache = None  # type: Any
        self._lines = []  # type: List[str]

    @property
    def wants_log(self) -> bool:
        """Whether the builder's verbose log is needed."""
        return self._cache is not None

    def attach(self, config: Any) -> None:
        """Prepare a builder configuration whose timing cache, if any, is set.

        Raises:
            AdapterError: When this release can do neither, or a choice is not available.
        """
        if not self._active:
            return
        if hasattr(config, "algorithm_selector"):
            self._selector = make_selector(self._trt, self._wanted)
            config.algorithm_selector = self._selector
            return
        cache = config.get_timing_cache()
        if not hasattr(cache, "queryKeys"):
            raise AdapterError(
                AdapterFailure.MISSING,
                "TensorRT {} can neither report nor replay tactics".format(self._trt.__version__),
                "tensorrt-feature-missing",
                "use a release with an algorithm selector (8.5 to 10.x) or an editable timing cache (10.8 and later)",
            )
        self._cache = cache
        pin_in_cache(self._trt, cache, self._wanted)

    def log(self, message: str) -> None:
        """Take a line of the builder's log."""
        if self._cache is not None:
            self._lines.append(message)

    def told(self) -> List[Row]:
        """Return the choices, in order.

        Raises:
            AdapterError: When TensorRT did not follow the file of choices.
        """
        if self._selector is not None:
            rows = list(self._selector.rows)
        elif self._cache is not None:
            rows = self._from_cache()
        else:
            return []
        _check_pinned(self._wanted, rows, self._selector.refused if self._selector is not None else [])
        return rows

    def _from_cache(self) -> List[Row]:
        """Return the rows of the log, and those whose entries were in the cache already: nothing is timed then."""
        rows = rows_of_log("\n".join(self._lines))
        seen = {row["key"] for row in rows}
        for choice in self._wanted:
            if choice.get("key") and choice["key"] not in seen:
                value = self._cache.query(self._trt.TimingCacheKey.parse(choice["key"]))
                rows.append(dict(choice, tactic=hash_word(value.tacticHash)))
        return rows


def read_choices(path: str) -> List[Row]:
    """Return the choices of a file.

    Raises:
        AdapterError: When it is no ``tensortriage.tactics/1``.
    """
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        if document["format"] != FORMAT:
            raise ValueError("its format is {!r}".format(document["format"]))
        return [dict(choice) for choice in document["choices"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise AdapterError(
            AdapterFailure.USAGE,
            "tactics cannot be read from {}: {}".format(path, error),
            "tactics-unreadable",
            "give a file that --save-tactics wrote; triage inspect tactics shows what is in one",
        ) from error


def make_selector(trt: Any, wanted: Sequence[Row]) -> Any:
    """Return an ``IAlgorithmSelector`` that answers with the wanted choices and records the builder's.

    It has ``rows`` (the choices) and ``refused`` (layers whose wanted choice was not among those offered).
    """
    by_layer = {choice["layer"]: choice for choice in wanted}

    class Selector(trt.IAlgorithmSelector):  # type: ignore[misc] # TensorRT has no types here
        """Must call the constructor of the binding's class itself."""

        def __init__(self) -> None:
            trt.IAlgorithmSelector.__init__(self)
            self.rows = []  # type: List[Row]
            self.refused = []  # type: List[str]

        def select_algorithms(self, context: Any, choices: Sequence[Any]) -> List[int]:
            """Return which of the offered algorithms may be used: all where nothing is needed."""
            choice = by_layer.get(context.name)
            if choice is None:
                return list(range(len(choices)))
            fitting = [i for i, algorithm in enumerate(choices) if same(describe(trt, context, algorithm), choice)]
            if not fitting:
                self.refused.append(context.name)
                return list(range(len(choices)))
            return fitting[:1]

        def report_algorithms(self, contexts: Sequence[Any], choices: Sequence[Any]) -> None:
            """Note the final choices."""
            self.rows = [describe(trt, context, choices[index]) for index, context in enumerate(contexts)]

    return Selector()


def describe(trt: Any, context: Any, algorithm: Any) -> Row:
    """Return one algorithm of one layer as a row."""
    variant = algorithm.algorithm_variant
    tensors = [_format(algorithm.get_algorithm_io_info(i)) for i in range(context.num_inputs + context.num_outputs)]
    return {
        "layer": context.name,
        "tactic": hash_word(variant.tactic),
        "implementation": hash_word(variant.implementation),
        "inputs": tensors[: context.num_inputs],
        "outputs": tensors[context.num_inputs :],
        "nodes": [],
        "milliseconds": float(algorithm.timing_msec),
        "key": "",
    }


def same(row: Row, choice: Row) -> bool:
    """Return whether an algorithm is the one of a choice: variant and formats, not its time."""
    formats = all(list(row[field]) == list(choice.get(field) or row[field]) for field in ("inputs", "outputs"))
    return formats and all(row[field] == choice[field] for field in ("tactic", "implementation"))


def _format(info: Any) -> str:
    """Return type and memory format of one tensor: strides, and the vectorization where this release reports it."""
    strides = "x".join(str(stride) for stride in info.strides)
    layout = [str(getattr(info, name)) for name in ("vectorized_dim", "components_per_element") if hasattr(info, name)]
    if not layout and hasattr(info, "tensor_format"):
        layout = [word(info.tensor_format)]
    return ":".join([word(info.dtype).lower(), strides, *layout])


def pin_in_cache(trt: Any, cache: Any, wanted: Sequence[Row]) -> None:
    """Set entries of an editable timing cache to the wanted choices.

    Raises:
        AdapterError: When the cache has no entry of that key, or refuses.
    """
    for choice in wanted:
        if not choice.get("key"):
            continue
        key = trt.TimingCacheKey.parse(choice["key"])
        value = trt.TimingCacheValue(int(choice["tactic"], 16), PINNED_MILLISECONDS)
        if not cache.update(key, value) or hash_word(cache.query(key).tacticHash) != choice["tactic"].lower():
            raise AdapterError(
                AdapterFailure.USAGE,
                "the timing cache has no entry {} for layer '{}'".format(choice["key"], choice["layer"]),
                "tactics-not-pinned",
                "give the timing cache of the build that made the tactics: timing_cache=FILE",
            )


def rows_of_log(text: str) -> List[Row]:
    """Return the choices in a verbose log of a build with an editable timing cache, with ``alternatives``.

    Format: TensorRT's sampleEditableTimingCache, release 10.8 and later: "Autotuning op NAME(key: KEY):", a table of
    the tactics tried, "The selected tactic is (tactic hash, cost(in ms)):HASH, COST". Entries that the builder took
    from the cache without timing are not in it.
    """
    rows = []  # type: List[Row]
    op: Optional[Row] = None
    for line in text.splitlines():
        started, tried, selected = _OP.search(line), _tried(_message(line)), _SELECTED.search(line)
        if started:
            op = _new_row(started.group(1).strip(), started.group(2).lower())
        elif op is not None and tried:
            op["alternatives"].append(tried)
        elif op is not None and selected:
            op["tactic"], op["milliseconds"] = selected.group(1).lower(), float(selected.group(2))
            names = {item["tactic"]: item["implementation"] for item in op["alternatives"]}
            op["implementation"] = names.get(op["tactic"], "")
            rows.append(op)
            op = None
    return rows


def _tried(message: str) -> Optional[Row]:
    """Return a row of the table, "3, 0.0112640, 1.00000, 0.50673, KERNEL, HASH,"; one long pattern takes minutes."""
    fields = [field.strip() for field in message.split(",")]
    if len(fields) < 6 or not fields[0].isdigit() or not re.fullmatch(_COST, fields[1]):
        return None
    for place in range(4, len(fields) - 1):
        if fields[place - 1] and _HASH.fullmatch(fields[place]):
            cost = float(fields[1])
            return {"implementation": fields[place - 1], "tactic": fields[place].lower(), "milliseconds": cost}
    return None


def _new_row(layer: str, key: str) -> Row:
    return {"layer": layer, "key": key, "inputs": [], "outputs": [], "nodes": [], "alternatives": []}


def _message(line: str) -> str:
    """Return a line of a log without its prefix from loggers: ``[11/20/2026-10:00:00] [V] [TRT] text``."""
    return re.sub(r"^(\s*\[[^\]]*\])+\s*", "", line)


def _check_pinned(wanted: Sequence[Row], rows: Sequence[Row], refused: Sequence[str]) -> None:
    made = {row["key"] or row["layer"]: row for row in rows}
    broken = list(refused)
    for choice in wanted:
        row = made.get(choice.get("key") or choice["layer"])
        if row is not None and row["tactic"] != choice["tactic"]:
            broken.append(choice["layer"])
    if broken:
        names = list(dict.fromkeys(broken))
        raise AdapterError(
            AdapterFailure.BUILD,
            "TensorRT did not accept the tactic given for {}".format(", ".join(map(repr, names[:5]))),
            "tactics-not-pinned",
            "give tactics of the same model, release, device and precision",
        )


def hash_word(number: int) -> str:
    """Return an id as unsigned hexadecimal; TensorRT reports a few as negative numbers."""
    return "{:#x}".format(int(number) & _MASK)

"""ONNX Runtime in a worker: another Python, another release, or an execution provider from a plugin library.

Options and formats are handled here as for the engine in this process; the worker gets a model as it is to be built,
and settings. A provider that wants fixed shapes gets a build for the shapes that are fed.
"""

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensortriage.engines.base import Limits, Plan
from tensortriage.engines.feed_checks import build_failed
from tensortriage.engines.onnxruntime.plugin_providers import FALLBACK, known_provider, plugin_words
from tensortriage.engines.onnxruntime.settings import CONVERTED, PRECISIONS, read_settings
from tensortriage.engines.options import Options
from tensortriage.engines.process.by_shape import SessionByShape
from tensortriage.engines.process.given_files import FILE, checked_file
from tensortriage.engines.process.isolated import IsolatedEngine, IsolatedSession
from tensortriage.errors import BuildFailed, ModelError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.values.dtype import Precision

if TYPE_CHECKING:
    from tensortriage.model.model import Model

TITLE = "ONNX Runtime"
_QUANTIZERS = frozenset({"QuantizeLinear", "DequantizeLinear"})
_PROBED: dict[str, Mapping[str, Any]] = {}
"""Features of a Python's ONNX Runtime, by interpreter and plugin: queried once per process."""


@frozen_dataclass
class Providers:
    """The names of providers in another Python; see `tensortriage.engines.onnxruntime.settings.ProviderList`."""

    available: Sequence[str]
    every: Sequence[str]

    def get_available_providers(self) -> list[str]:
        """Return the providers of that build."""
        return list(self.available)

    def get_all_providers(self) -> list[str]:
        """Return every provider there is."""
        return list(self.every)


@frozen_dataclass
class Requested:
    """The plugin provider that is to compute, empty for the providers of the build, and its number format."""

    provider: str
    precision: Precision


class Elsewhere:
    """ONNX Runtime in workers.

    Args:
        limits: Bounds on time and memory.
    """

    def __init__(self, limits: Limits) -> None:
        self._isolated = IsolatedEngine("onnxruntime", title=TITLE, limits=limits)

    def probe(self, given: Options) -> Mapping[str, Any]:
        """Return version, providers and the plugin of the Python that options name.

        Raises:
            EngineMissing: When it cannot be used.
        """
        words = {"settings": json.dumps({"plugin": plugin_words(given)}), **_place(given)}
        key = json.dumps(words, sort_keys=True)
        if key not in _PROBED:
            _PROBED[key] = self._isolated.probe(words, affinity=given.text("ep"))
        return _PROBED[key]

    def compile(
        self, model: Path, given: Options, convert: Callable[["Model", Precision], "Model"]
    ) -> "ElsewhereSession":
        """Build a model; see `OnnxRuntimeEngine.compile`.

        Args:
            model: ONNX file.
            given: Options of the engine.
            convert: Rewrites a model for a precision that is reached by converting it.

        Raises:
            BuildFailed: When the provider refuses the model.
        """
        from tensortriage.model.model import Model

        found = self.probe(given)
        plugin = plugin_words(given)
        settings = read_settings(given, Providers(found["providers"], found["all_providers"]))
        known = known_provider(given)
        try:
            loaded = original = Model.of_file(model.absolute())
            precision = _asked(given, loaded)
            if known is None and precision in CONVERTED:
                loaded = convert(loaded, precision)
        except ModelError as error:
            raise build_failed(TITLE, error.message, cure=error.cure) from error
        fallback = given.word("fallback", FALLBACK)
        words = json.dumps({**settings.words(), "plugin": plugin, "fallback": fallback})
        compiled = Path(checked_file(given.text(FILE), TITLE)) if FILE in given else None

        def built(path: Path) -> IsolatedSession:
            place = {"settings": words, **_place(given)}
            return self._isolated.compile(compiled or path, place, affinity=given.text("ep"))

        return ElsewhereSession(
            original,
            loaded,
            built,
            Requested(found["plugin"]["name"] if plugin else "", precision),
            compiled=compiled is not None,
            fixed_shapes=known is not None and known.fixed_shapes,
        )


class ElsewhereSession(SessionByShape):
    """A model built by ONNX Runtime in a worker; made by `Elsewhere.compile`.

    Args:
        original: Path of the user's model, whose nodes `plan` names.
        model: The built model: the same, or converted.
        build: Builds a file.
        requested: The plugin provider and number format that are to compute it.
        compiled: Whether the session runs a precompiled file: then it reports neither nodes nor inner values.
        fixed_shapes: Whether open dimensions must be closed, by those of the feeds.
    """

    def __init__(
        self,
        original: "Model",
        model: "Model",
        build: Callable[[Path], IsolatedSession],
        requested: Requested,
        *,
        compiled: bool,
        fixed_shapes: bool,
    ) -> None:
        self._original, self._requested, self._compiled = original, requested, compiled

        def checked(path: Path, shaped: "Model") -> IsolatedSession:
            session = build(path)
            try:
                if compiled:
                    _check_whole(session, shaped)
                _check_placement(session.info.get("placement"), original, requested)
            except BaseException:
                session.close()
                raise
            return session

        super().__init__(model, checked, title=TITLE, fixed_shapes=fixed_shapes)
        if self._built is not None:
            self.inputs, self.outputs = self._built.inputs, self._built.outputs

    def plan(self) -> Plan | None:
        """Return the regions and their providers; builds for dimensions of 1 when nothing has been run yet.

        None for a precompiled file.
        """
        if self._compiled:
            return None
        session = self.built_for_any()
        if not self._requested.provider:
            return self._optimized(session)
        from tensortriage.engines.onnxruntime.provider_graph import placed_regions

        graphs, _ = session.answer("graphs")
        provider, precision = self._requested.provider, self._requested.precision
        label = Precision.FP16.dtype.label if precision in (Precision.FP16, Precision.INT8) else ""
        placement = session.info.get("placement") or ()
        regions = placed_regions(self._original, graphs["graphs"], placement, provider, label)
        return Plan(regions, device=provider) if regions else None

    def _optimized(self, session: IsolatedSession) -> Plan | None:
        from tensortriage.engines.onnxruntime.node_map import fused_regions
        from tensortriage.model.model import Model

        _, files = session.answer("optimized")
        with tempfile.TemporaryDirectory(prefix="triage-onnxruntime-") as folder:
            for name, content in files.items():
                (Path(folder) / Path(name).name).write_bytes(content.tobytes())
            try:
                return Plan(fused_regions(self._original, Model.load(Path(folder) / "optimized.onnx")))
            except ModelError:
                return None


def _place(given: Options) -> dict[str, str]:
    return {"worker": given.text("worker")} if "worker" in given else {}


def _asked(given: Options, model: "Model") -> Precision:
    """Return the requested format.

    Raises:
        BuildFailed: For int8 where the model has no quantizers (``quantizers-missing``).
    """
    known = known_provider(given)
    if known is None:
        return given.precision("precision", PRECISIONS, Precision.FP32)
    precision = given.precision("precision", known.precisions, known.precisions[0])
    quantized = any(node.op_type in _QUANTIZERS for node in model.graph.nodes)
    if precision is Precision.INT8 and "precision" in given and not quantized:
        raise BuildFailed(
            "this provider computes in int8 only where the model has Q/DQ pairs, and it has none",
            slug="quantizers-missing",
            cure="quantize the model first: triage convert MODEL --int8 --inputs DATA -o OUT",
        )
    return precision


def _check_whole(session: IsolatedSession, model: "Model") -> None:
    """Refuse to run a precompiled file in place of another model, a part of its own for example.

    Raises:
        BuildFailed: When it takes or gives other tensors.
    """
    from tensortriage.model.shape_inference.value_specs import value_specs

    known = value_specs(model)
    sides = (
        ("inputs", session.inputs, model.inputs),
        ("outputs", session.outputs, [known.get(spec.name, spec) for spec in model.outputs]),
    )
    for what, held, wanted in sides:
        own, theirs = ({spec.name: spec.shape for spec in specs} for specs in (wanted, held))
        if own.keys() != theirs.keys() or any(None not in (own[n], theirs[n]) and own[n] != theirs[n] for n in own):
            message = f"the file has the {what} {theirs}; the model has {own}"
            raise BuildFailed(message, slug="build-failed", cure="compile the file from this model, for these shapes")


def _check_placement(placement: Sequence[Mapping[str, Any]] | None, model: "Model", requested: Requested) -> None:
    """Refuse a build if no rounding operator runs on the requested provider.

    Raises:
        BuildFailed: Then (``provider-unused``).
    """
    provider = requested.provider
    if not provider or placement is None:
        return
    from tensortriage.model.mixed_precision.rounding_nodes import MOVES_DATA

    working = {
        part["provider"]: [node for node in part["nodes"] if node["op_type"] not in MOVES_DATA] for part in placement
    }
    if working.get(provider) or not any(working.values()) or not _rounds(model):
        return
    ops = sorted({node["op_type"] for nodes in working.values() for node in nodes})
    raise BuildFailed(
        f"{provider} runs no node of the model ({', '.join(ops[:8])}): all would run on the CPU, not in "
        f"{requested.precision.value}",
        slug="provider-unused",
        cure="give dynamic dimensions a fixed size, or read its log",
    )


def _rounds(model: "Model") -> bool:
    """Return whether a model computes in floating point."""
    return any(spec.dtype is not None and spec.dtype.is_float for spec in (*model.inputs, *model.outputs))

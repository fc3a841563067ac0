"""ONNX Runtime of this Python: sessions with the host's settings, and the assignment of nodes to providers.

The host has checked the options and hands them over as one JSON text under ``settings`` (see
`tensortriage.engines.onnxruntime.elsewhere`). Features later than release 1.8 are used only after a check.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

import numpy as np

from tensortriage_worker.adapter import AdapterError, AdapterFailure, own_fault
from tensortriage_worker.exchange import Item
from tensortriage_worker.onnxruntime import values
from tensortriage_worker.onnxruntime.plugins import Plugin, register
from tensortriage_worker.onnxruntime.session_options import SILENT, session_options

_RECORD_PLACEMENT = "session.record_ep_graph_assignment_info"
_NO_FALLBACK = "session.disable_cpu_ep_fallback"
_DUMPS = {"QNNExecutionProvider": ("dump_json_qnn_graph", "json_qnn_graph_dir")}
"""Options of a provider that make it write the graphs it compiled, as JSON files in a folder."""


def probe(options: Mapping[str, str]) -> Dict[str, Any]:
    """Return the version, the providers of this build and of every one, and the devices of a plugin if one is named."""
    ort = _import()
    found = {
        "version": ort.__version__,
        "providers": list(ort.get_available_providers()),
        "all_providers": list(ort.get_all_providers()),
    }  # type: Dict[str, Any]
    settings = json.loads(options.get("settings", "{}"))
    if settings.get("plugin"):
        plugin = register(ort, settings["plugin"])
        found["plugin"] = {"name": plugin.name, "version": plugin.version, "library": plugin.library}
    return found


def compile(model: Path, options: Mapping[str, str]) -> "AdaptedSession":
    """Build an ONNX file."""
    ort = _import()
    settings = json.loads(options["settings"])
    plugin = register(ort, settings["plugin"]) if settings.get("plugin") else None
    return AdaptedSession(ort, model, settings, plugin)


class AdaptedSession:
    """A built model; see `AdapterSession`."""

    def __init__(self, ort: Any, model: Path, settings: Mapping[str, Any], plugin: Optional[Plugin]) -> None:
        self._ort, self._model, self._settings, self._plugin = ort, model, settings, plugin
        self._dumps = tempfile.TemporaryDirectory(prefix="triage-graphs-")
        try:
            self._session = self._built()
            self.inputs = [values.spec(arg) for arg in self._session.get_inputs()]
            self.outputs = [values.spec(arg) for arg in self._session.get_outputs()]
        except BaseException:
            self._dumps.cleanup()
            raise
        self._labels = {row["name"]: row["dtype"] for row in (*self.inputs, *self.outputs)}
        self.info = {
            "version": ort.__version__,
            "providers": list(self._session.get_providers()),
            "placement": self._placement(),
        }  # type: Dict[str, Any]

    def run(self, feed: Mapping[str, Item]) -> Iterable[Item]:
        """Run once.

        Raises:
            AdapterError: When ONNX Runtime refuses the feed or fails.
        """
        names = [row["name"] for row in self.outputs]
        try:
            if "string" in self._labels.values():
                results = self._session.run(names, {name: values.plain(item) for name, item in feed.items()})
                return [Item(name, np.asarray(array)) for name, array in zip(names, results)]  # noqa: B905 - Python 3.8
            fed = {name: values.to_ort_value(self._ort, item, self._labels[name]) for name, item in feed.items()}
            results = self._session.run_with_ort_values(names, fed)
            return [values.to_item(name, result, self._labels[name]) for name, result in zip(names, results)]  # noqa: B905 - Python 3.8
        except Exception as error:  # its errors have no common class
            if own_fault(error):
                raise
            raise AdapterError(AdapterFailure.RUN, values.reason(error)) from error

    def plan(self) -> Optional[List[Dict[str, Any]]]:
        """Return None: the plan comes with `answer`, and is read where ONNX files can be read."""
        return None

    def answer(
        self, question: str, feed: Mapping[str, Item], arguments: Mapping[str, Any], spill: Any
    ) -> Tuple[Dict[str, Any], List[Item]]:
        """Answer ``optimized`` (files of the optimized graph) or ``graphs`` (those that a provider compiled)."""
        if question == "graphs":
            dumped = sorted(Path(self._dumps.name).glob("*_[0-9].json"))
            return {"graphs": [json.loads(path.read_text()) for path in dumped]}, []
        with tempfile.TemporaryDirectory(prefix="triage-optimized-") as folder:
            saved = os.path.join(folder, "optimized.onnx")
            self._built(save_to=saved)
            return {}, [Item(path.name, np.fromfile(str(path), np.uint8)) for path in sorted(Path(folder).iterdir())]

    def close(self) -> None:
        """Release the session."""
        self._session = None
        self._dumps.cleanup()

    def _built(self, save_to: str = "") -> Any:
        settings = self._settings
        try:
            config = {_RECORD_PLACEMENT: "1", **({_NO_FALLBACK: "1"} if settings["fallback"] == "refuse" else {})}
            options = session_options(self._ort, settings, config=config, save_to=save_to)
            providers = [(name, dict(own)) for name, own in settings["providers"]]
            if self._plugin is not None:
                self._add_plugin(options, self._plugin)
                providers = []
            return self._ort.InferenceSession(
                str(self._model),
                options,
                **({"providers": providers} if providers else {}),
                **({"disabled_optimizers": settings["disabled_optimizers"]} if settings["disabled_optimizers"] else {}),
            )
        except AdapterError:
            raise
        except Exception as error:  # its errors have no common class
            if own_fault(error):
                raise
            raise AdapterError(AdapterFailure.BUILD, values.reason(error)) from error

    def _add_plugin(self, options: Any, plugin: Plugin) -> None:
        own = {**plugin.options, **self._settings["plugin"]["options"]}
        switch, folder = _DUMPS.get(plugin.name, ("", ""))
        if switch and switch not in own:
            own.update({switch: "1", folder: self._dumps.name})
        options.add_provider_for_devices(plugin.devices, own)

    def _placement(self) -> Optional[List[Dict[str, Any]]]:
        """Return the provider of each node of the graph; None where this release does not report it."""
        tell = getattr(self._session, "get_provider_graph_assignment_info", None)
        if tell is None:
            return None
        rows = []
        for part in tell():
            nodes = [{"name": node.name, "op_type": node.op_type, "domain": node.domain} for node in part.get_nodes()]
            rows.append({"provider": part.ep_name, "nodes": nodes})
        return rows


def _import() -> Any:
    try:
        import onnxruntime
    except Exception as error:  # besides ImportError, a broken shared library may raise anything
        raise AdapterError(
            AdapterFailure.MISSING,
            "ONNX Runtime cannot be imported: {}".format(" ".join(str(error).split())),
            "engine-not-installed",
            "pip install onnxruntime",
        ) from error
    onnxruntime.set_default_logger_severity(SILENT)
    return onnxruntime

"""Options of a session of ONNX Runtime, in the host's process and in the worker alike."""

from __future__ import annotations

import os
from typing import Any, Mapping

SILENT = 4
"""Severity of log lines from which on none is left."""
_SPINNING = "session.intra_op.allow_spinning"  # of threads that have nothing to do, unless the options ask for it
_SAVED_WEIGHTS = "session.optimized_model_external_initializers_"


def session_options(
    ort: Any, settings: Mapping[str, Any], *, config: Mapping[str, str], save_to: str = "", log_level: int = SILENT
) -> Any:
    """Return a ``SessionOptions``.

    Args:
        ort: The module ``onnxruntime``.
        settings: The fields of the host's ``SessionSettings``, checked.
        config: Further session config entries; those of the settings come last.
        save_to: File of the optimized model; empty to write none.
        log_level: Severity from which on the build logs.
    """
    options = ort.SessionOptions()
    options.log_severity_level = log_level
    levels = ort.GraphOptimizationLevel  # older releases lack the one between extended and all
    options.graph_optimization_level = getattr(levels, settings["level"], levels.ORT_ENABLE_ALL)
    options.enable_cpu_mem_arena = False
    options.intra_op_num_threads = settings["threads"]
    if settings["inter_threads"]:
        options.inter_op_num_threads = settings["inter_threads"]
    if settings["inter_threads"] > 1:
        options.execution_mode = ort.ExecutionMode.ORT_PARALLEL
    if settings["deterministic"]:
        options.use_deterministic_compute = True
    entries = {_SPINNING: "0", **config, **settings["config"]}
    if save_to:
        options.optimized_model_filepath = save_to
        entries[_SAVED_WEIGHTS + "file_name"] = os.path.basename(save_to) + ".data"
        entries[_SAVED_WEIGHTS + "min_size_in_bytes"] = "1024"
    for key, value in entries.items():
        options.add_session_config_entry(key, value)
    if settings["custom_ops"]:
        options.register_custom_ops_library(settings["custom_ops"])
    return options

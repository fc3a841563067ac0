"""From the option words of the engine ``onnxruntime`` to checked settings of a session.

Kept apart from the engine so that it needs no ONNX Runtime: the names of the providers are handed in.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from tensortriage.engines.onnxruntime.file_types import file_precision
from tensortriage.engines.onnxruntime.plugin_providers import plugin_precision
from tensortriage.engines.options import Options
from tensortriage.engines.process.given_files import FILE
from tensortriage.errors import EngineMissing, UsageError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.values.dtype import Precision

CONVERTED = (Precision.FP16, Precision.BF16)
"""Precisions that the engine reaches by converting the model."""
PRECISIONS = (Precision.FP32, Precision.TF32, *CONVERTED)
"""Precisions that the engine understands."""
_CPU = "CPUExecutionProvider"
_CUDA = "CUDAExecutionProvider"
_TF32_PROVIDERS = (_CUDA, "TensorrtExecutionProvider", "NvTensorRTRTXExecutionProvider")
_HARDWARE = {
    "cpu": "cpu", "dnnl": "cpu", "xnnpack": "cpu",
    "cuda": "gpu", "tensorrt": "gpu", "nvtensorrtrtx": "gpu", "rocm": "gpu", "migraphx": "gpu", "dml": "gpu",
    "webgpu": "gpu", "qnn": "npu", "vsinpu": "npu", "rknpu": "npu",
}  # fmt: skip
"""Providers that run on one class of hardware and no other; OpenVINO, CoreML, CANN and others may run on several."""
_LEVELS = {
    "none": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "layout": "ORT_ENABLE_LAYOUT",
    "all": "ORT_ENABLE_ALL",
}


@frozen_dataclass
class SessionSettings:
    """Settings of a session, checked.

    Attributes:
        level: Member name of ``onnxruntime.GraphOptimizationLevel``.
        providers: Full provider names with their options, most wanted first.
        threads: Threads within one operator; 0 lets ONNX Runtime decide.
        inter_threads: Operators at a time; above 1 the graph runs in parallel mode.
        deterministic: Ask for deterministic kernels.
        disabled_optimizers: Names of graph transformers left out; ONNX Runtime ignores unknown ones.
        config: Session config entries; ONNX Runtime ignores unknown ones.
        custom_ops: Shared library with custom operators; empty for none.
    """

    level: str = _LEVELS["all"]
    providers: tuple[tuple[str, Mapping[str, str]], ...] = ((_CPU, MappingProxyType({})),)
    threads: int = 0
    inter_threads: int = 0
    deterministic: bool = False
    disabled_optimizers: tuple[str, ...] = ()
    config: Mapping[str, str] = dataclasses.field(default_factory=dict)
    custom_ops: str = ""

    def words(self) -> dict[str, Any]:
        """Return the settings as plain data, for `tensortriage_worker.onnxruntime.session_options`."""
        providers = [[name, dict(own)] for name, own in self.providers]
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {**fields, "providers": providers, "config": dict(self.config)}


UNOPTIMIZED = SessionSettings(level=_LEVELS["none"])
"""Every node runs as written, on the CPU."""


class ProviderList(Protocol):
    """The parts of the onnxruntime module in use."""

    def get_available_providers(self) -> list[str]:
        """Return the providers of this build."""
        ...

    def get_all_providers(self) -> list[str]:
        """Return every provider there is."""
        ...


def read_settings(given: Options, known: ProviderList) -> SessionSettings:
    """Return the settings that option words ask for.

    Raises:
        UsageError: For a value that is not understood.
        EngineMissing: For a provider that this build of ONNX Runtime lacks (slug ``provider-missing``).
    """
    names = _providers(given.words("providers") or ("cpu",), known)
    own = dict(given.family("provider_option"))
    if plugin_precision(given) is not None:
        precision = Precision.FP32  # not to be reached by the CPU provider behind it
    else:
        precision = given.precision("precision", PRECISIONS, Precision.FP32)
    if "precision" in given and names[0] == _CUDA and precision not in CONVERTED:
        own["use_tf32"] = "1" if precision is Precision.TF32 else "0"
    elif precision is Precision.TF32 and names[0] not in _TF32_PROVIDERS:
        raise UsageError(
            f"precision=tf32 has no effect on {names[0]}", slug="engine-option-value", cure="add providers=cuda"
        )
    return SessionSettings(
        level=given.choice("optimization", _LEVELS, _LEVELS["all"]),
        providers=((names[0], own), *((name, {}) for name in names[1:])),
        threads=given.integer("threads", 0),
        inter_threads=given.integer("inter_threads", 0),
        deterministic=given.boolean("deterministic", default=False),
        disabled_optimizers=given.words("disabled_optimizers"),
        config=given.family("config"),
        custom_ops=given.text("custom_ops"),
    )


def nominal_precision(given: Options) -> str:
    """Return the precision word for options, without probing the machine; the word of the file if they name one."""
    if (own_way := plugin_precision(given)) is not None:
        return own_way.value
    if "precision" in given:
        return given.precision("precision", PRECISIONS).value
    if FILE in given and (precision := file_precision(given.text(FILE))) is not None:
        return precision.value
    own = given.family("provider_option")
    for word, key in (("int8", "trt_int8_enable"), ("fp16", "trt_fp16_enable"), ("bf16", "trt_bf16_enable")):
        if own.get(key, "0").lower() in ("1", "true"):
            return word
    first = _matching((*given.words("providers"), "cpu")[0], (_CPU, *_TF32_PROVIDERS))
    return "tf32" if first in _TF32_PROVIDERS and own.get("use_tf32", "1") != "0" else "fp32"


def hardware_of(given: Options) -> str:
    """Return the class of hardware of the requested providers, that of an accelerator first.

    ``cpu`` only where all of them are the CPU's; ``any`` where one is not known.
    """
    if "ep" in given:  # a name or a library, and the name that it is registered under
        words = f"{Path(given.text('ep')).name} {given.text('ep_name')}".lower()
        found = {where for short, where in _HARDWARE.items() if short in words and where != "cpu"}
    else:
        names = [_matching(word, tuple(_HARDWARE)) for word in given.words("providers") or ("cpu",)]
        found = {_HARDWARE.get(name, "any") for name in names}
    return next((where for where in ("gpu", "npu", "any") if where in found), "cpu" if found else "any")


def ladder(options: Mapping[str, str], precision: str) -> list[tuple[str, Mapping[str, str]]]:
    """Return levels from no optimization to the options given, with the words for the settings of each.

    Args:
        options: As written in the engine spec.
        precision: The precision word they mean.
    """
    requested = options.get("optimization", "all").strip().lower()
    levels = list(_LEVELS)[: list(_LEVELS).index(requested) + 1] if requested in _LEVELS else []
    rungs: list[tuple[str, Mapping[str, str]]] = []
    if precision in {item.value for item in CONVERTED} and "ep" not in options:  # a plugin has no other format
        wide = {**options, "precision": Precision.FP32.value}
        rungs = [
            ("precision=fp32,optimization=none", {**wide, "optimization": "none"}),
            (f"precision=fp32,optimization={requested}", wide),
        ]
    rungs += [(f"optimization={level}", {**options, "optimization": level}) for level in levels[:-1]]
    return [*rungs, (f"optimization={requested}", dict(options))]


def _providers(words: Sequence[str], known: ProviderList) -> tuple[str, ...]:
    """Return full provider names; the CPU provider, which ONNX Runtime always falls back to, goes last."""
    available, every = known.get_available_providers(), known.get_all_providers()
    names = []
    for word in words:
        name = _matching(word, available)
        if name:
            names.append(name)
        elif _matching(word, every):
            raise EngineMissing(
                f"this build of ONNX Runtime has no {_matching(word, every)}",
                slug="provider-missing",
                cure="install the ONNX Runtime package for that device, e.g. pip install onnxruntime-gpu",
            )
        else:
            raise UsageError(
                f"'{word}' is not an execution provider", slug="provider-unknown", cure=f"use one of {', '.join(every)}"
            )
    return tuple(dict.fromkeys([*names, _CPU]))


def _matching(word: str, names: Sequence[str]) -> str:
    """Return the provider a partial name means: equal before prefix before infix, earlier before later; or empty."""
    word = word.lower().removesuffix("executionprovider")
    shorts = {name.lower().removesuffix("executionprovider"): name for name in names}
    for fits in (str.__eq__, str.startswith, str.__contains__):
        found = [short for short in shorts if fits(short, word)]
        if found:
            return shorts[found[0]]
    return ""

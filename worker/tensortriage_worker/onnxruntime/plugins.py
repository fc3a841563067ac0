"""Execution providers that come as libraries of their own: found by name or path, registered once per process.

Since 1.22 ONNX Runtime loads providers from libraries that are not part of it. A package with one offers
``get_library_path()`` and ``get_ep_name()`` (ONNX Runtime's packaging guidance); any library can be named by path.
The name under which a library is registered becomes the provider's own, and QNN 2.7 takes no node at all under
another name than ``QNNExecutionProvider``, silently: so the package's word for it is used.
"""

from __future__ import annotations

import importlib
import os
import re
from typing import Any, Dict, List, Mapping, NamedTuple

from tensortriage_worker.adapter import AdapterError, AdapterFailure

PACKAGES = ("onnxruntime_{}", "onnxruntime_ep_{}", "onnxruntime_providers_{}", "{}")
"""Names of packages with a provider NAME."""
_NO_DRIVER = "run on a machine with an NVIDIA GPU and its driver, or name one: worker=ssh://HOST"
_KNOWN = {}  # type: Dict[str, Plugin]


class Plugin(NamedTuple):
    """A provider that was registered.

    Attributes:
        name: Name of the provider in ONNX Runtime.
        library: File it came from.
        version: Version of the plugin; empty when it has none.
        devices: Its devices, the first wanted.
        options: Options without which it does not work at all.
    """

    name: str
    library: str
    version: str
    devices: List[Any]
    options: Mapping[str, str]


def register(ort: Any, wanted: Mapping[str, Any]) -> Plugin:
    """Return the provider that ``wanted["name"]`` (a name or a library's path) names.

    Raises:
        AdapterError: When there is none, or it offers no device here.
    """
    if not hasattr(ort, "register_execution_provider_library"):
        raise _missing(
            "ONNX Runtime {} knows no provider libraries".format(ort.__version__),
            "use a Python with ONNX Runtime 1.22 or newer: worker=/path/to/python",
        )
    word = wanted["name"]
    if word in _KNOWN:
        return _KNOWN[word]
    name, library, options = _found(word)
    name = wanted.get("registered_as") or name
    try:
        ort.register_execution_provider_library(name, library)
    except Exception as error:  # its errors have no common class
        if "already" not in str(error):
            raise _not_loaded(library, " ".join(str(error).split())) from error
    devices = [device for device in ort.get_ep_devices() if device.ep_name == name]
    if not devices:
        seen = ", ".join(sorted({device.ep_name for device in ort.get_ep_devices()}))
        raise _missing(
            "{} offers no device here".format(name),
            "providers with a device: {}; see ep_name and the driver".format(seen),
        )
    version = str(dict(devices[0].ep_metadata).get("version", ""))
    _KNOWN[word] = Plugin(name, library, version, devices[:1], options)
    return _KNOWN[word]


def _found(word: str) -> "tuple[str, str, Dict[str, str]]":
    if os.sep in word or word.endswith((".so", ".dll", ".dylib")):
        path = os.path.abspath(os.path.expanduser(word))
        if not os.path.isfile(path):
            raise _missing("there is no provider library {}".format(path), "name a shared library, or a provider")
        stem = re.sub(r"^lib|^onnxruntime_providers_|\.(so|dll|dylib).*$", "", os.path.basename(path))
        return stem, path, {}
    for form in PACKAGES:
        try:
            package = importlib.import_module(form.format(word.lower()))
        except ImportError:
            continue
        if callable(getattr(package, "get_library_path", None)):
            return _named(package, word), str(package.get_library_path()), _needed(package)
    raise _missing(
        "no package here provides the execution provider '{}'".format(word),
        "triage engines install {}, or name its library: ep=/path/to/library.so".format(word),
    )


def _not_loaded(library: str, reason: str) -> AdapterError:
    if "libcuda." in reason:
        return _missing("{} needs an NVIDIA driver: {}".format(library, reason), _NO_DRIVER)
    return _missing("{} is no provider library: {}".format(library, reason), "")


def _named(package: Any, word: str) -> str:
    tell = getattr(package, "get_ep_name", None)
    return str(tell()) if callable(tell) else word


def _needed(package: Any) -> Dict[str, str]:
    """Return the path of QNN's HTP library, which the provider does not find in its own folder."""
    tell = getattr(package, "get_qnn_htp_path", None)
    return {"backend_path": str(tell())} if callable(tell) else {}


def _missing(message: str, cure: str) -> AdapterError:
    return AdapterError(AdapterFailure.MISSING, message, "provider-missing", cure or "name another library")

"""Record what TensorRT's Python bindings offer, compactly: the source of ``bindings.json`` in this folder.

    python record_bindings.py RELEASE=DUMP.json ... > bindings.json

A dump lists every class of one release of the binding with its members and pybind11 signatures. It is made by importing
the real binding (PyPI: ``tensorrt`` 8.5.3.1, ``tensorrt_cu12_bindings``, ``tensorrt_cu13_bindings``,
``tensorrt_rtx_cu13_bindings``) over stand-ins of its libraries, so no GPU is needed. Kept are the classes that the
adapter uses: a property is ``r`` or ``rw``, an enum member ``enum`` (its number is left out on purpose: numbers moved),
a method the list of its arguments.
"""

import json
import re
import sys

CLASSES = (
    "Builder", "BuilderFlag", "DataType", "EngineInspector", "IAlgorithm", "IAlgorithmContext", "IAlgorithmIOInfo",
    "IAlgorithmSelector", "IAlgorithmVariant", "IBuilderConfig", "ICudaEngine", "IDebugListener", "IExecutionContext",
    "IInt8EntropyCalibrator", "IInt8EntropyCalibrator2", "IInt8MinMaxCalibrator", "ILayer", "ILogger",
    "INetworkDefinition", "IOptimizationProfile", "IOutputAllocator", "IPluginRegistry", "ITensor", "ITimingCache",
    "LayerInformationFormat", "LayerType", "MemoryPoolType", "NetworkDefinitionCreationFlag", "OnnxParser",
    "ParserError", "ProfilingVerbosity", "Runtime", "TacticSource", "TensorIOMode", "TensorLocation", "TimingCacheKey",
    "TimingCacheValue",
)  # fmt: skip


def compact(text: str) -> object:
    """Return ``enum``, ``r``, ``rw``, or the argument names of each overload."""
    if text.startswith("enum="):
        return "enum"
    if text.startswith("property:"):
        return text.rsplit("[", 1)[-1].rstrip("]").replace("ro", "r")
    return [arguments(signature) for signature in text.split(" | ") if "->" in signature and "*args" not in signature]


def arguments(signature: str) -> list[str]:
    """Return the names of a signature's arguments without ``self``; optional ones end with ``=``."""
    inner = signature[signature.index("(") + 1 : signature.rindex(")")]
    parts, depth = [""], 0
    for letter in inner:
        depth += (letter in "[(<") - (letter in "])>")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    names = [part.split(":")[0].strip() + ("=" if re.search(r"=", part) else "") for part in parts if ":" in part]
    return [name for name in names if name != "self"]


def main() -> None:
    """Print the record of the dumps on the command line."""
    recorded = {}
    for word in sys.argv[1:]:
        release, _, path = word.partition("=")
        with open(path) as file:
            dump = json.load(file)
        recorded[release] = {
            name: {key: compact(text) for key, text in dump[name]["members"].items() if not key.startswith("_")}
            for name in CLASSES
            if name in dump
        }
    json.dump(recorded, sys.stdout, indent=0, sort_keys=True)


if __name__ == "__main__":
    main()

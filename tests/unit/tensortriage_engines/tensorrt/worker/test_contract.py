"""Every name and argument count of TensorRT that the adapter relies on, against records of the real bindings.

``tests/data/tensorrt/bindings.json`` was recorded from the bindings of 8.5.3, 10.0.1, 10.12, 10.16, 11.0, 11.4 and RTX
1.7.1 by the script next to it. What a release lacks must be behind a question (``hasattr`` or a look-up by name).
"""

import ast
import json
import types
from pathlib import Path

import pytest

from tensortriage_engines.tensorrt import worker
from tensortriage_engines.tensorrt.worker.dtypes import LABELS
from tensortriage_engines.tensorrt.worker.library import features, member

RECORD = json.loads((Path(__file__).parents[4] / "data" / "tensorrt" / "bindings.json").read_text())
RELEASES = tuple(RECORD)
CALLS = {
    "Builder": {"build_serialized_network": 2, "create_builder_config": 0, "create_network": 1,
                "create_optimization_profile": 0},
    "EngineInspector": {"get_engine_information": 1},
    "IBuilderConfig": {"add_optimization_profile": 1, "clear_flag": 1, "create_timing_cache": 1,
                       "get_tactic_sources": 0, "get_timing_cache": 0, "set_flag": 1, "set_memory_pool_limit": 2,
                       "set_preview_feature": 2, "set_tactic_sources": 1, "set_timing_cache": 2},
    "ICudaEngine": {"create_engine_inspector": 0, "create_execution_context": 0, "get_tensor_dtype": 1,
                    "get_tensor_format": 1, "get_tensor_location": 1, "get_tensor_mode": 1, "get_tensor_name": 1,
                    "get_tensor_profile_shape": 2,
                    "get_tensor_shape": 1},
    "IExecutionContext": {"execute_async_v3": 1, "get_tensor_shape": 1, "infer_shapes": 0, "set_input_shape": 2,
                          "set_optimization_profile_async": 2, "set_output_allocator": 2, "set_tensor_address": 2},
    "ILayer": {"get_output": 1},
    "INetworkDefinition": {"get_input": 1, "get_layer": 1},
    "IOptimizationProfile": {"set_shape": 4, "set_shape_input": 4},
    "ITimingCache": {"serialize": 0},
    "OnnxParser": {"get_error": 1, "parse_from_file": 1},
    "ParserError": {"code": 0, "desc": 0, "node": 0},
    "Runtime": {"deserialize_cuda_engine": 1},
}  # fmt: skip
"""Methods that every release must have, and the number of arguments that the adapter passes."""
PROPERTIES = {
    "EngineInspector": {"execution_context": "rw"},
    "IBuilderConfig": {"avg_timing_iterations": "rw", "profiling_verbosity": "rw"},
    "ICudaEngine": {"num_io_tensors": "r"},
    "ILayer": {"name": "rw", "num_outputs": "r", "type": "r"},
    "INetworkDefinition": {"num_inputs": "r", "num_layers": "r"},
    "ITensor": {"dtype": "r", "is_shape_tensor": "r", "name": "r", "shape": "r"},
    "OnnxParser": {"num_errors": "r"},
}
MEMBERS = {
    "BuilderFlag": ("TF32",), "LayerInformationFormat": ("JSON",), "MemoryPoolType": ("WORKSPACE",),
    "ProfilingVerbosity": ("DETAILED",), "TensorIOMode": ("INPUT", "OUTPUT"), "TensorLocation": ("HOST",),
    "DataType": ("FLOAT",),
}  # fmt: skip
OPTIONAL = {
    ("IBuilderConfig", "algorithm_selector"): {"8.5.3.1", "10.0.1", "10.12.0.36", "10.16.1.11"},
    ("IBuilderConfig", "int8_calibrator"): {"8.5.3.1", "10.0.1", "10.12.0.36", "10.16.1.11"},
    ("IBuilderConfig", "set_calibration_profile"): {"8.5.3.1", "10.0.1", "10.12.0.36", "10.16.1.11"},
    ("IBuilderConfig", "set_quantization_flag"): {"8.5.3.1", "10.0.1", "10.12.0.36", "10.16.1.11"},
    ("ILayer", "precision"): {"8.5.3.1", "10.0.1", "10.12.0.36", "10.16.1.11"},
    ("ILayer", "set_output_type"): {"8.5.3.1", "10.0.1", "10.12.0.36", "10.16.1.11"},
    ("IBuilderConfig", "build_route"): {"11.4.0.106", "rtx-1.7.1.116"},
    ("IBuilderConfig", "builder_optimization_level"): {*RELEASES} - {"8.5.3.1"},
    ("IBuilderConfig", "max_aux_streams"): {*RELEASES} - {"8.5.3.1"},
    ("IBuilderConfig", "plugins_to_serialize"): {*RELEASES} - {"8.5.3.1"},
    ("IExecutionContext", "set_debug_listener"): {*RELEASES} - {"8.5.3.1"},
    ("IExecutionContext", "set_all_tensors_debug_state"): {*RELEASES} - {"8.5.3.1"},
    ("IExecutionContext", "unfused_tensors_debug_state"): {*RELEASES} - {"8.5.3.1", "10.0.1"},
    ("INetworkDefinition", "mark_debug"): {*RELEASES} - {"8.5.3.1"},
    ("INetworkDefinition", "mark_unfused_tensors_as_debug_tensors"): {*RELEASES} - {"8.5.3.1", "10.0.1"},
    ("IPluginRegistry", "load_library"): {*RELEASES} - {"8.5.3.1"},
    ("ITimingCache", "queryKeys"): {*RELEASES} - {"8.5.3.1", "10.0.1"},
    ("ITimingCache", "query"): {*RELEASES} - {"8.5.3.1", "10.0.1"},
    ("ITimingCache", "update"): {*RELEASES} - {"8.5.3.1", "10.0.1"},
    ("TimingCacheKey", "parse"): {*RELEASES} - {"8.5.3.1", "10.0.1"},
    ("TimingCacheValue", "tacticHash"): {*RELEASES} - {"8.5.3.1", "10.0.1"},
    ("TimingCacheValue", "timingMSec"): {*RELEASES} - {"8.5.3.1", "10.0.1"},
    ("ILayer", "metadata"): {*RELEASES} - {"8.5.3.1"},
    ("ParserError", "node_name"): {*RELEASES} - {"8.5.3.1"},
    ("ParserError", "node_operator"): {*RELEASES} - {"8.5.3.1"},
    ("Runtime", "engine_host_code_allowed"): {*RELEASES} - {"8.5.3.1"},
}  # fmt: skip
"""What only some releases have, and which: the adapter must ask."""
FEATURES = {
    "8.5.3.1": "weak=fp16+int8 algorithm_selector calibrator layer_precision",
    "10.0.1": "weak=fp16+bf16+fp8+int8 strong algorithm_selector calibrator layer_precision mark_debug opt_level",
    "10.12.0.36": "weak=fp16+bf16+fp8+int8 strong algorithm_selector calibrator layer_precision mark_debug opt_level "
    "strict_nans unfused_debug editable_timing_cache",
    "10.16.1.11": "weak=fp16+bf16+fp8+int8 strong algorithm_selector calibrator layer_precision mark_debug opt_level "
    "strict_nans unfused_debug editable_timing_cache",
    "11.0.0.114": "strong mark_debug opt_level strict_nans unfused_debug editable_timing_cache",
    "11.4.0.106": "strong mark_debug opt_level strict_nans unfused_debug editable_timing_cache build_route",
    "rtx-1.7.1.116": "strong mark_debug opt_level strict_nans unfused_debug editable_timing_cache build_route",
}
"""What the adapter should find in each release (release notes of TensorRT; table of changes in the records)."""


def module(release: str) -> types.SimpleNamespace:
    """Return a module with the classes and members of a release, values by name."""
    classes = {name: type(name, (), {key: key for key in members}) for name, members in RECORD[release].items()}
    return types.SimpleNamespace(__name__="tensorrt", __version__=release, **classes)


@pytest.mark.parametrize("release", RELEASES)
def test_every_release_has_what_is_used_without_asking(release):
    record = RECORD[release]
    for name, methods in CALLS.items():
        for method, count in methods.items():
            overloads = record[name][method]
            assert any(takes(overload, count) for overload in overloads), (name, method, overloads)
    for name, properties in PROPERTIES.items():
        for key, access in properties.items():
            assert record[name][key].startswith(access), (name, key)
    for name, members in MEMBERS.items():
        assert set(members) <= record[name].keys()
        assert all(record[name][key] == "enum" for key in members)


def takes(arguments: list[str], count: int) -> bool:
    needed = sum(not argument.endswith("=") for argument in arguments)
    return needed <= count <= len(arguments)


@pytest.mark.parametrize("key", OPTIONAL, ids=".".join)
def test_what_only_some_releases_have(key):
    name, attribute = key
    assert {release for release in RELEASES if attribute in RECORD[release].get(name, {})} == OPTIONAL[key]


@pytest.mark.parametrize("release", RELEASES)
def test_features_are_found_by_name(release):
    expected: dict[str, object] = {"weak": []}
    for word in FEATURES[release].split():
        key, _, value = word.partition("=")
        expected[key] = (value.split("+") if key == "weak" else value) or True
    found = features(module(release))
    assert {key: value for key, value in found.items() if value or key == "weak"} == {
        "version": release,
        "library": "tensorrt",
        **expected,
    }


def test_every_element_type_of_every_release_is_known():
    seen = {name for release in RELEASES for name, kind in RECORD[release]["DataType"].items() if kind == "enum"}
    assert seen == set(LABELS)


def test_a_member_that_is_zero_is_found():
    assert member(types.SimpleNamespace(E=types.SimpleNamespace(A=0)), "E", "A") == [0]
    assert member(types.SimpleNamespace(E=types.SimpleNamespace()), "E", "A") is None


def test_no_use_of_the_binding_is_missing_here():
    """Every attribute in the adapter's source that is a name of the binding is in one of the tables above."""
    known = {key for table in (CALLS, PROPERTIES) for names in table.values() for key in names}
    known |= {key for names in MEMBERS.values() for key in names} | {key for _, key in OPTIONAL} | SELECTOR | COMMON
    vocabulary = {key for record in RECORD.values() for members in record.values() for key in members}
    used: dict[str, str] = {}
    for file in sorted(Path(worker.__file__).parent.glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Attribute) and node.attr in vocabulary:
                used.setdefault(node.attr, f"{file.name}:{node.lineno}")
    assert {name: place for name, place in used.items() if name not in known} == {}


SELECTOR = {
    "algorithm_variant", "get_algorithm_io_info", "implementation", "num_inputs", "num_outputs", "strides", "tactic",
    "timing_msec", "tensor_format", "vectorized_dim", "components_per_element", "get_shape", "dtype", "workspace_size",
    "num_optimization_profiles",
}  # fmt: skip
"""Of the algorithm interfaces and of loaded engines; their releases are those of ``algorithm_selector``."""
COMMON = {"name", "shape", "value", "execute", "reset", "log", "file", "parse", "combine", "get_batch", "itemsize"}
COMMON |= {"get_plugin_registry", "reallocate_output"}  # a function of the module; a method of our own
"""Words that other objects of the adapter use as well."""

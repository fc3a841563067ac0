"""RKNN: rknn-toolkit2 converts the model for a board of Rockchip's, and its simulator runs it.

Seen with rknn-toolkit2 2.5.0: the simulator runs the build of the same process, and no .rknn file; it computes in fp16,
or in int8 with ranges from a calibration feed; it has no fp32. A model with quantizers keeps their scales. The files
that the toolkit saves between quantization and compilation (``NAME.model``, ``.data``, ``.quantization.cfg``) can be
given instead of the model. ``accuracy_analysis`` runs the same graph, and leaves every layer's result in a file.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple

import numpy as np

from tensortriage_engines.rknn.worker.layers import plan
from tensortriage_engines.rknn.worker.toolkit import ToolkitFolder, toolkit
from tensortriage_worker.adapter import AdapterError, AdapterFailure
from tensortriage_worker.declared import SessionByPlace, check_types
from tensortriage_worker.exchange import Item
from tensortriage_worker.shards import ShardReader

SAVED = {"file": ".model", "data": ".data", "config": ".quantization.cfg"}
"""Options that name files saved by the toolkit, and the endings of their names."""
_QUANTIZERS = ("QuantizeLinear", "DequantizeLinear")
_DATASET = "dataset.txt"
_SNAPSHOT = "snapshot"
_MOVED = re.compile(r"(?:[-_](?:rs|tp))+$")
"""Endings of names of values that got axes of one entry, or have their axes in another order (by 2.3 either)."""
_NORM = re.compile(r"(?:#\d+)?$")
"""Ending of the name of a normalization, whose result the toolkit names like its node."""


def probe(options: Mapping[str, str]) -> Dict[str, Any]:
    """Return the version of the toolkit."""
    toolkit()
    import importlib.metadata as metadata

    return {"version": metadata.version("rknn-toolkit2")}


def compile(model: Path, options: Mapping[str, str]) -> "SimulatedSession":
    """Convert an ONNX file for a board, or take a saved conversion, and start the simulator."""
    library = toolkit()
    import onnx

    declared = json.loads(options["declared"])
    check_types(declared, "RKNN")
    loaded = onnx.load(str(model))
    quantized = any(node.op_type in _QUANTIZERS for node in loaded.graph.node)
    started = time.perf_counter()
    scratch = ToolkitFolder()
    try:
        network = scratch.asked(library, verbose=True)
        scratch.asked(
            network.config,
            target_platform=options["target"],
            optimization_level=int(options["optimize"]),
            quantized_algorithm=options["algorithm"],
            quantized_method=options["method"],
        )
        if options.get("file"):
            declared = declared_in(options["file"])
            _rebuild(network, scratch, options)
        else:
            scratch.asked(network.load_onnx, str(model))
            _build(network, scratch, options, declared, quantized)
        layers = plan(scratch.said(), scratch.path, loaded)
        values = ModelValues(_shapes(loaded), _norms(loaded))
        scratch.asked(network.init_runtime)
    except BaseException:
        scratch.close()
        raise
    narrow = (quantized and not options.get("file")) or options["precision"] == "int8"
    info = {"conversion_seconds": time.perf_counter() - started, "precision": "int8" if narrow else "fp16"}
    return SimulatedSession(network, scratch, declared, info, layers, values)


class ModelValues(NamedTuple):
    """The shapes of a model's values, and the results of its normalizations, which are stored under other names."""

    shapes: Mapping[str, List[int]]
    norms: Mapping[str, str]


class SimulatedSession(SessionByPlace):
    """A converted model in the simulator."""

    def __init__(
        self,
        network: Any,
        scratch: ToolkitFolder,
        declared: Mapping[str, Any],
        info: Dict[str, Any],
        layers: Optional[List[Dict[str, Any]]],
        values: "ModelValues",
    ) -> None:
        super().__init__(declared, info)
        self._network, self._scratch, self._layers, self._values = network, scratch, layers, values

    def call(self, arrays: List[np.ndarray]) -> List[np.ndarray]:
        """Return the results; inputs are channels first, as the simulator requires for those with four axes only.

        Raises:
            AdapterError: When the simulator fails.
        """
        formats = ["nchw"] * len(arrays)
        try:
            found = self._scratch.asked(self._network.inference, inputs=arrays, data_format=formats)
        except AdapterError as error:
            raise AdapterError(AdapterFailure.RUN, error.message) from error
        return [np.asarray(array) for array in found]

    def plan(self) -> Optional[List[Dict[str, Any]]]:
        """Return the layers that the compiler reported."""
        return self._layers

    def seen(self, feed: Mapping[str, Item], wanted: Tuple[str, ...]) -> Iterable[Item]:
        """Return those of the wanted values that a layer holds under their own names, or with their axes moved."""
        names = _saved_feed(self._scratch, [feed[spec["name"]].array for spec in self.inputs or ()])
        shutil.rmtree(str(self._scratch.path / _SNAPSHOT), ignore_errors=True)
        try:
            self._scratch.asked(self._network.accuracy_analysis, inputs=names, output_dir=_SNAPSHOT)
        except AdapterError:  # models with quantizers are analysed on boards only
            return
        for name, held, path in _snapshots(self._scratch.path / _SNAPSHOT, wanted, *self._values):
            array = in_place(np.load(str(path)), self._values.shapes.get(name), moved=held != name)
            if array is not None:
                yield Item(name, array)

    def close(self) -> None:
        """Release the simulator and its folder."""
        self._network.release()
        self._scratch.close()


def _build(
    network: Any, scratch: ToolkitFolder, options: Mapping[str, str], declared: Mapping[str, Any], quantized: bool
) -> None:
    if options["precision"] != "int8" or quantized:
        scratch.asked(network.build, do_quantization=False)
        return
    reader = ShardReader(options["calibration"])
    fed = {spec["name"]: reader.tensor(spec["name"]) for spec in declared["inputs"]}
    lines = [
        " ".join(_saved_feed(scratch, arrays, "batch{}-".format(number)))
        for number, arrays in enumerate(batches([fed[s["name"]] for s in declared["inputs"]], declared["inputs"]))
    ]
    (scratch.path / _DATASET).write_text("\n".join(lines) + "\n")
    scratch.asked(network.build, do_quantization=True, dataset=_DATASET)


def declared_in(file: str) -> Dict[str, List[Dict[str, Any]]]:
    """Return names, types and shapes of a saved graph's own inputs and outputs, in its order."""
    import onnx

    graph = onnx.load_model_from_string(Path(file).read_bytes()).graph
    constants = {tensor.name for tensor in graph.initializer}
    fed = [value for value in graph.input if value.name not in constants]
    return {"inputs": list(map(_row, fed)), "outputs": list(map(_row, graph.output))}


def _row(value: Any) -> Dict[str, Any]:
    import onnx

    kind = value.type.tensor_type
    shape = [size.dim_value if size.HasField("dim_value") else None for size in kind.shape.dim]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type).name
    return {"name": value.name, "dtype": dtype, "shape": shape if kind.HasField("shape") else None}


def _rebuild(network: Any, scratch: ToolkitFolder, options: Mapping[str, str]) -> None:
    copies = [shutil.copy(options[key], str(scratch.path / ("model" + ending))) for key, ending in SAVED.items()]
    if options["precision"] == "fp16":
        import onnx

        made = [node.output[0] for node in onnx.load_model_from_string(Path(copies[0]).read_bytes()).graph.node]
        config = Path(copies[-1])
        config.write_text(unrounded(config.read_text("utf-8"), made), "utf-8")
    scratch.asked(network.hybrid_quantization_step2, *copies)


def unrounded(config: str, values: Iterable[str]) -> str:
    """Return a configuration of hybrid quantization with all values in float16, in place of its own choices."""
    rows = "".join("    {}: float16\n".format(json.dumps(value)) for value in values)
    rest = re.sub(r"^custom_quantize_layers:.*\n(?:[ \t].*\n)*", "", config, flags=re.MULTILINE)
    return "custom_quantize_layers:\n" + rows + rest


def batches(arrays: List[np.ndarray], specs: List[Mapping[str, Any]]) -> List[List[np.ndarray]]:
    """Return a feed in batches of the shapes that a model declares: rows are dealt out, over and over where they lack.

    Ranges chosen from a feed of 32 rows hold for a model of one row as well. A feed that differs in more than the
    first axis is returned as it is.
    """
    wanted = [spec["shape"] for spec in specs]
    pairs = list(zip(arrays, wanted))  # noqa: B905 - Python 3.8
    if all(list(array.shape) == shape for array, shape in pairs):
        return [arrays]
    sizes = {(array.shape[0], shape[0]) for array, shape in pairs if array.ndim and list(array.shape) != shape}
    if len(sizes) != 1 or any(list(array.shape[1:]) != shape[1:] for array, shape in pairs):
        return [arrays]
    rows, size = sizes.pop()
    dealt = []
    for start in range(0, rows, size):
        order = np.arange(start, start + size) % rows
        dealt.append([array if list(array.shape) == shape else array[order] for array, shape in pairs])
    return dealt


def in_place(array: np.ndarray, wanted: Optional[List[int]], *, moved: bool) -> Optional[np.ndarray]:
    """Return a layer's result with the model's order of axes; None where sizes do not determine it.

    Args:
        array: The layer's result.
        wanted: The shape in the model; None where it is not known.
        moved: Whether the layer's name shows another order of axes than the model's.
    """
    sizes, sought = ([size for size in shape if size != 1] for shape in (array.shape, wanted or ()))
    if not moved:
        return array.reshape(wanted) if wanted is not None and sizes == sought else array
    if wanted is None or len(set(sizes)) < len(sizes) or sorted(sizes) != sorted(sought):
        return None
    return array.reshape(sizes).transpose([sizes.index(size) for size in sought]).reshape(wanted)


def _shapes(model: Any) -> Dict[str, List[int]]:
    """Return the shapes of a model's inner values, as far as they are inferred."""
    import onnx

    inferred = onnx.shape_inference.infer_shapes(model).graph.value_info
    return {value.name: [size.dim_value for size in value.type.tensor_type.shape.dim] for value in inferred}


def _norms(model: Any) -> Dict[str, str]:
    """Return the results of a model's normalizations, by node."""
    return {node.name: node.output[0] for node in model.graph.node if node.op_type.endswith("Normalization")}


def _saved_feed(scratch: ToolkitFolder, arrays: Iterable[np.ndarray], start: str = "") -> List[str]:
    names = []
    for number, array in enumerate(arrays):
        names.append("{}input{}.npy".format(start, number))
        np.save(str(scratch.path / names[-1]), array)
    return names


def _snapshots(
    folder: Path, wanted: Iterable[str], known: Iterable[str], norms: Mapping[str, str]
) -> List[Tuple[str, str, Path]]:
    """Return the wanted values, the names that the table next to the files has for them, and their files.

    Args:
        folder: Output folder of an analysis.
        wanted: Names in the model.
        known: All names in the model, none of which is another's with an ending.
        norms: The result of each normalization, by node.
    """
    table = folder / "map_name_to_file.txt"
    rows = [line.split() for line in table.read_text().splitlines()] if table.is_file() else []
    files = {row[0]: row[1] for row in rows if len(row) == 2}
    own = set(known)
    called = {}  # type: Dict[str, str]
    for held in files:
        norm = norms.get(_NORM.sub("", held), "")
        called.setdefault(held if held in own else norm or _MOVED.sub("", held), held)
    found = []
    for name in wanted:
        held = name if name in files else called.get(name, "")
        path = folder / "simulator" / "npy" / (Path(files.get(held, "")).stem + ".npy")
        if held and path.is_file():
            found.append((name, held, path))
    return found

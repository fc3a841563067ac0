"""Compute everything that does not depend on the inputs once, and write the results into the model.

The work is done by onnxscript's constant folding, which works on the onnx_ir graph in place (weights stay on disk until
one is needed), folds inside bodies and functions, inlines an If whose condition is constant, and propagates symbolic
shapes. What it gets wrong for a debugging tool is put right around it here: names of nodes and values survive, numbers
that are drawn at random are never frozen, results have a size limit in bytes, a node that cannot be folded never keeps
another from being folded, and nodes with several results are folded too.
"""

import logging
import math
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from tensortriage.errors import ModelError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.io.lazy_weights import lacks_numbers
from tensortriage.model.ir.attributes import bodies
from tensortriage.model.ir.display_names import first_line
from tensortriage.model.ir.node_names import restorer_of_names
from tensortriage.model.ir.traversal import all_graphs, all_nodes
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.annotate import with_inferred_shapes
from tensortriage.model.transforms.around_folding import (
    constant_names,
    constants_to_initializers,
    drop_provenance,
    give_range_scalars,
    inherit_names,
    undeclare_initializers,
)
from tensortriage.model.transforms.rewrite_helpers import Names, initializer, is_standard
from tensortriage.model.transforms.unused_removal import clean_in_place

_logger = logging.getLogger(__name__)
RANDOM = frozenset(
    {"Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)
"""Operators that draw random numbers."""
_SHAPE_SOURCES = frozenset({"Shape", "Size"})
_WRITTEN_FOR = {"ConcatFromSequence": 13, "SplitToSequence": 18}
"""Operators that onnxscript 0.7 replaces by others in the form of this opset, whichever opset the model has."""

_HIDDEN = "tensortriage.hidden"
_BLOWN_UP = frozenset({"ConstantOfShape", "Expand", "OneHot", "Pad", "Range", "Resize", "Tile", "Upsample"})
"""Operators whose result can be far larger than their operands: not folded while the size is unknown."""

_UNLIMITED = 1 << 62
_WIDEST = 16
_DEFAULT_RESULT_BYTES = 1 << 30
_DEFAULT_PASSES = 10
_FAILED_NODE = re.compile(r"folding for node (['\"])(.*)\1 \(")

logging.getLogger("onnxscript").addHandler(logging.NullHandler())  # else its warnings go to stderr unasked


@frozen_dataclass(kw_only=True)
class FoldOptions:
    """Extent of folding.

    Attributes:
        max_result_bytes: Largest constant that is made; a node that would make a larger one is left as it is.
        passes: Most passes; None until nothing changes any more.
        shapes: Whether Shape and Size nodes, and values computed from them, are folded.
        infer_shapes: Whether shape inference runs before every pass; without it few Shape nodes are known.
    """

    max_result_bytes: int = _DEFAULT_RESULT_BYTES
    passes: int | None = None
    shapes: bool = True
    infer_shapes: bool = True


def fold_constants(model: Model, options: FoldOptions | None = None) -> Model:
    """Return the model with constant expressions computed, bodies and functions included.

    Nodes that nothing uses any more are removed, and so are nodes and initializers that nothing used before. Quantizers
    are left alone, because they say what is quantized, and so is everything that depends on random numbers.

    Args:
        model: The model; it is not changed.
        options: How far to go.

    Raises:
        ModelError: When the folder fails in a way that names no node (slug ``folding-failed``).
    """
    options = options or FoldOptions()
    work = model.clone()
    count = _size(work.ir)
    for number in range(options.passes or _DEFAULT_PASSES):
        _logger.info("Folding Constants | Pass %d", number + 1)
        if options.infer_shapes:
            work = with_inferred_shapes(work)
        nodes = set(all_nodes(work.ir))
        _Folding(work.ir, options).apply()
        work.is_inferred = options.infer_shapes and nodes == set(all_nodes(work.ir))
        before, count = count, _size(work.ir)
        if count == before:
            break
    folded = Model.from_ir(work.ir)
    folded.is_inferred = work.is_inferred
    return folded


class _Folding:
    """One pass over one onnx_ir model, in place."""

    def __init__(self, model: ir.Model, options: FoldOptions) -> None:
        self._model = model
        self._options = options
        self._hidden: list[tuple[ir.Node, str]] = []

    def apply(self) -> None:
        """Fold, restore the names, and remove dead nodes."""
        before = set(all_nodes(self._model))
        makers = {value.name or "": node.name for node in before for value in node.outputs}
        own = {node.name for node in before if node.name}
        constant = constant_names(self._model)
        restore = restorer_of_names(self._model)
        declare = undeclare_initializers(self._model)
        functions = self._other_functions()
        for key in functions:
            del self._model.functions[key]
        opset = self._model.opset_imports.get("", 0)
        left_alone = {op for op, version in _WRITTEN_FOR.items() if opset < version}
        left_alone |= set() if self._options.shapes else _SHAPE_SOURCES
        self._hide(
            node
            for node in all_nodes(self._model)
            if is_standard(node, *left_alone) or _loses_attributes(node) or _lacks_numbers(node)
        )
        try:
            self._fold()
        finally:
            for node, domain in self._hidden:
                node.domain = domain
            self._model.opset_imports.pop(_HIDDEN, None)
        for key, function in functions.items():
            self._model.functions[key] = function
        constants_to_initializers(self._model, before)
        restore()
        inherit_names(self._model, own, makers)
        declare()
        for graph in all_graphs(self._model):
            drop_provenance(graph)
        _fold_several_results(self._model, self._decide)
        give_range_scalars(self._model, constant)
        clean_in_place(self._model)

    def _fold(self) -> None:
        # The package behind this function is large; it is imported when it is needed.
        from onnxscript.optimizer import fold_constants as fold

        while True:
            try:
                with np.errstate(all="ignore"), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    fold(
                        self._model,
                        onnx_shape_inference=False,  # it would run in this process: see model.inference
                        input_size_limit=_UNLIMITED,
                        output_size_limit=_UNLIMITED,
                        should_fold=self._decide,
                    )
                return
            except Exception as error:  # of any type: its rules meet unchecked models
                if not self._hide_the_culprit(error):
                    raise ModelError(
                        f"constant folding failed: {first_line(error)}",
                        slug="folding-failed",
                        cure="sanitize without --fold-constants, and report the model",
                    ) from error

    def _hide_the_culprit(self, error: Exception) -> bool:
        """Exclude a node on which folding failed; return whether there was one."""
        found = next((m for e in _chain(error) if (m := _FAILED_NODE.search(str(e)))), None)
        if found is None:
            return False
        culprits = [n for n in all_nodes(self._model) if n.name == found[2] and n.domain != _HIDDEN]
        self._hide(culprits)
        return bool(culprits)

    def _hide(self, nodes: Iterator[ir.Node] | list[ir.Node]) -> None:
        """Give nodes a domain that the folder does not know, for as long as it works."""
        for node in list(nodes):
            self._hidden.append((node, node.domain))
            node.domain = _HIDDEN

    def _other_functions(self) -> dict[ir.OperatorIdentifier, ir.Function]:
        """Return the functions of another opset than the model's, which the folder would take for the model's."""
        return {
            key: function
            for key, function in self._model.functions.items()
            if function.opset_imports.get("", 0) not in (0, self._model.opset_imports.get("", 0))
        }

    def _decide(self, node: ir.Node) -> bool | None:
        """Return whether a node whose operands are constant is folded: yes, no, or None for the folder's own rules."""
        if is_standard(node, *RANDOM):
            return False
        nbytes = _result_bytes(node)
        if is_standard(node, *_BLOWN_UP) if nbytes is None else nbytes > self._options.max_result_bytes:
            return False
        return True if is_standard(node, "ConstantOfShape") else None


def _loses_attributes(node: ir.Node) -> bool:
    """Return whether onnxscript 0.7 would replace a node by one without its attributes: the saturate of CastLike."""
    return is_standard(node, "CastLike") and bool(node.attributes)


def _lacks_numbers(node: ir.Node) -> bool:
    """Return whether a node computes with a weight whose numbers were stripped or are ignored."""
    return any(value is not None and lacks_numbers(value.const_value) for value in node.inputs)


def _chain(error: BaseException) -> Iterator[BaseException]:
    found: BaseException | None = error
    while found is not None:
        yield found
        found = found.__cause__ or found.__context__


def _size(model: ir.Model) -> int:
    return sum(1 for _ in all_nodes(model))


def _result_bytes(node: ir.Node) -> int | None:
    """Return the bytes of a node's results; None when their shapes are not known."""
    total = 0
    for value in node.outputs:
        shape = _given_shape(node) if value.shape is None or not value.shape.is_static() else value.shape.numpy()
        if shape is None:
            return None
        total += math.ceil(math.prod(shape) * (value.dtype.itemsize if value.dtype else _WIDEST))
    return total


def _given_shape(node: ir.Node) -> tuple[int, ...] | None:
    """Return the shape of a ConstantOfShape or Expand from its constant operand; None for other nodes."""
    position = {"ConstantOfShape": 0, "Expand": 1}.get(node.op_type)
    operands = [None if value is None else value.const_value for value in node.inputs]
    sizes = operands[position] if position is not None and position < len(operands) else None
    if sizes is None:
        return None
    shape = [int(size) for size in np.ravel(sizes.numpy())]
    data = operands[0]
    if node.op_type == "Expand" and data is not None:
        own = (1,) * (len(shape) - len(data.shape)) + tuple(data.shape.numpy())
        shape = [1] * (len(own) - len(shape)) + shape
        return tuple(map(max, own, shape))
    return tuple(shape)


def _fold_several_results(model: ir.Model, decide: Callable[[ir.Node], bool | None]) -> None:
    """Fold the nodes of the main graph with several results (Split, TopK, ...), which onnxscript leaves alone."""
    names = Names(model.graph)
    for node in tuple(model.graph):
        operands = [value for value in node.inputs if value is not None]
        if (
            len(node.outputs) < 2
            or not operands
            or not is_standard(node, node.op_type)
            or bodies(node)
            or _lacks_numbers(node)
            or any(value.const_value is None or value.is_graph_input() for value in operands)
            or any(value in model.graph.outputs for value in node.outputs)
            or decide(node) is False
        ):
            continue
        results = _evaluate(model, node)
        for value, array in zip(node.outputs, results, strict=False):
            if value.uses() and isinstance(array, np.ndarray):
                name, value.name = value.name or "", names.fresh(f"unfolded::{value.name}")
                constant = initializer(name, array)
                model.graph.register_initializer(constant)
                value.replace_all_uses_with(constant)


def _evaluate(model: ir.Model, node: ir.Node) -> list[Any]:
    """Return the results of one node on constants; none when ONNX's reference implementation cannot compute them."""
    from onnx.reference import ReferenceEvaluator  # builds every operator's schema when it is imported

    proto = ir.to_proto(node)
    names = [name for name in proto.input if name]
    graph = onnx.helper.make_graph(
        [proto],
        "one",
        [onnx.ValueInfoProto(name=name) for name in dict.fromkeys(names)],
        [onnx.ValueInfoProto(name=name) for name in proto.output if name],
    )
    opsets = [onnx.helper.make_opsetid(domain, version) for domain, version in model.opset_imports.items()]
    arrays = {v.name or "": v.const_value.numpy() for v in node.inputs if v is not None and v.const_value is not None}
    try:
        with np.errstate(all="ignore"):
            found = ReferenceEvaluator(onnx.helper.make_model(graph, opset_imports=opsets)).run(None, arrays)
    except Exception:  # of any type: a node that cannot be evaluated stays a node
        return []
    results = dict(zip((name for name in proto.output if name), found, strict=True))
    return [results.get(name) for name in proto.output]

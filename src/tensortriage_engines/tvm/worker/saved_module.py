"""A Relax module in files: the script of it, NAME.py, with the arrays of its parameters by name in NAME.npz.

    main(image, fc_weight, fc_bias):  lv = R.nn.conv2d(image, ...);  lv1 = R.add(lv, ...);  ...

The importer binds its results one by one, so the k-th binding of a script is the k-th of the module that is imported
here of the same ONNX model, as long as types and operands are the same all along; what a binding computes may have been
edited. Which of them holds which ONNX value is seen by importing the model with all its values as outputs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List, Mapping, Sequence, Tuple

import numpy as np

from tensortriage_worker.adapter import AdapterError, AdapterFailure

Row = Tuple[str, Tuple[int, ...]]
"""The type of a binding, and its operands: places of earlier bindings, and of parameters, which count from -1 down."""


class SavedModule:
    """A script of Relax with its parameters, edited or not.

    Args:
        tvm: The package.
        path: NAME.py.
        arrays: NAME.npz.

    Raises:
        AdapterError: When TVM does not read them, or an array is missing.
    """

    def __init__(self, tvm: Any, path: Path, arrays: Path) -> None:
        from tvm import relax

        self._relax, self._tvm = relax, tvm
        try:
            self.module = tvm.script.from_source(path.read_text(encoding="utf-8"))
            self._main = self.module["main"]
        except Exception as error:  # any exception of a parser in Python is its reason
            words = " ".join("{}: {}".format(type(error).__name__, error).split())
            raise AdapterError(AdapterFailure.BUILD, "TVM does not read {}: {}".format(path.name, words)) from error
        names = list(map(str, self._main.params))
        with np.load(str(arrays)) as held:
            self._arrays = {name: held[name] for name in held.files if name in names}
        self._fed = [parameter for parameter in self._main.params if str(parameter) not in self._arrays]

    @property
    def inputs(self) -> List[List[int]]:
        """Shapes of the operands."""
        return [_sizes(_type(parameter)) for parameter in self._fed]

    @property
    def outputs(self) -> List[List[int]]:
        """Shapes of the results."""
        given = self._main.ret_ty if hasattr(self._main, "ret_ty") else self._main.ret_struct_info
        return [_sizes(kind) for kind in (given.fields if hasattr(given, "fields") else [given])]

    def bound(self, places: Sequence[int] = ()) -> Any:
        """Return the module with its arrays as constants; with places, it returns the values bound there instead."""
        module = self.module
        if places:
            module = self._tvm.IRModule(dict(module.functions_items()))
            module.update_func(module.get_global_var("main"), self._returning(places))
        return self._relax.transform.BindParams("main", self._arrays)(module)

    def values(self, marked: Any, names: Sequence[str]) -> Dict[str, int]:
        """Return the places of ONNX values among the bindings; none where the module is another one.

        Args:
            marked: Module that the importer makes of the model with further outputs, its weights as parameters.
            names: The outputs of that model, in order.
        """
        other = marked["main"]
        alike = len(self._main.params) == len(other.params)  # else constants are parameters in one of them only
        own, theirs = _rows(self._main, parameters=alike), _rows(other, parameters=alike)
        if not own or own != theirs[: len(own)]:
            return {}
        places = {binding.var: place for place, binding in enumerate(_bindings(other))}
        results = _bindings(other, tuples=True)[-1].value.fields
        found = {name: places.get(result) for name, result in zip(names, results)}  # noqa: B905 - Python 3.8
        return {
            name: place
            for name, place in found.items()
            if place is not None and place < len(own) and own[place][0].startswith("R.Tensor")
        }

    def _returning(self, places: Sequence[int]) -> Any:
        relax, body = self._relax, self._main.body
        wanted = [_bindings(self._main)[place].var for place in places]
        tuple_type = getattr(relax, "TupleStructInfo", relax.TupleType)
        result = relax.Var("watched", tuple_type(list(map(_type, wanted))))
        last = [*body.blocks[-1].bindings, relax.VarBinding(result, relax.Tuple(wanted))]
        blocks = [*body.blocks[:-1], relax.DataflowBlock(last)]
        made = relax.Function(list(self._main.params), relax.SeqExpr(blocks, result), _type(result))
        return made.with_attr("global_symbol", "main")


def _bindings(function: Any, *, tuples: bool = False) -> List[Any]:
    every = [binding for block in function.body.blocks for binding in block.bindings]
    return [binding for binding in every if tuples or type(binding.value).__name__ != "Tuple"]


def _rows(function: Any, *, parameters: bool) -> List[Row]:
    places = {each: -1 - place for place, each in enumerate(function.params)} if parameters else {}
    rows = []
    for place, binding in enumerate(_bindings(function)):
        value = binding.value
        operands = list(value.args) if hasattr(value, "args") else [getattr(value, "tuple_value", value)]
        rows.append((str(_type(binding.var)), tuple(places[each] for each in operands if _known(each, places))))
        places[binding.var] = place
    return rows


def _known(operand: Any, places: Mapping[Any, Any]) -> bool:
    return type(operand).__name__ in ("Var", "DataflowVar") and operand in places


def _type(variable: Any) -> Any:
    """Return a variable's type, which 0.25 has under another name."""
    return variable.ty if hasattr(variable, "ty") else variable.struct_info


def _sizes(kind: Any) -> List[int]:
    return [int(size) for size in kind.shape.values]

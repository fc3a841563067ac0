"""Float64 values are read in the type that the model gives them; all others as they are."""

import numpy as np

from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec
from tensortriage.values.store import MemoryStore
from tensortriage.values.typed_store import typed_as

SPECS = {
    "half": ValueSpec("half", DType.FLOAT16, (2,)),
    "single": ValueSpec("single", DType.FLOAT, None),
    "double": ValueSpec("double", DType.DOUBLE, (2,)),
    "untold": ValueSpec("untold", None, None),
    "flags": ValueSpec("flags", DType.BOOL, (2,)),
}


def test_float64_values_are_read_in_the_types_of_the_model():
    values = {name: np.array([1 / 3, 1e5]) for name in ("half", "single", "double", "untold", "elsewhere")}
    store = typed_as(MemoryStore({**values, "flags": np.array([True, False])}), SPECS)
    assert {name: store[name].dtype.name for name in store.names()} == {
        "half": "float16", "single": "float32", "double": "float64", "untold": "float64", "elsewhere": "float64",
        "flags": "bool",
    }  # fmt: skip
    assert store["half"][1] == np.inf  # float16 ends at 65504
    assert store["single"][0] == np.float32(1 / 3)
    assert store.spec("single") == ValueSpec("single", DType.FLOAT, (2,))


def test_a_store_without_float64_values_is_left_alone():
    store = MemoryStore({"single": np.ones(2, np.float32), "double": np.ones(2)})
    assert typed_as(store, SPECS) is store

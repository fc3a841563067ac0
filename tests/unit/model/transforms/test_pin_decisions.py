"""A model continues with the decisions it is given, and still tells its own."""

import numpy as np
import onnxruntime

from models import parse
from tensortriage.model.transforms.mark_outputs import select_outputs
from tensortriage.model.transforms.pin_decisions import pinned

MODEL = parse("""g (float[2,10] x) => (float[2,3] v, int64[2,3] i, int32[6] c, float[2] s)
 <int64[1] k={3}, int64[1] six={6}, int64[1] one={1}>
 { v, i = TopK(x, k)
   r = Reshape(i, six)
   c = Cast <to=6> (r)
   s = ReduceSum <keepdims=0> (v, one) }""")


def test_all_that_follows_takes_the_given_indices(tmp_path) -> None:
    """x is 0..19 in two rows: picks 2, 1, 0 and 3, 4, 5 hold 2, 1, 0 and 13, 14, 15; the model's own are 9, 8, 7."""
    given = np.array([[2, 1, 0], [3, 4, 5]])
    path = tmp_path / "m.onnx"
    select_outputs(pinned(MODEL, {"i": given}), ["v", "i", "c", "s", "before::i"]).save(path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    v, i, c, s, own = session.run(None, {"x": np.arange(20, dtype=np.float32).reshape(2, 10)})
    assert v.tolist() == [[2, 1, 0], [13, 14, 15]]
    assert i.tolist() == given.tolist()
    assert c.tolist() == [2, 1, 0, 3, 4, 5]
    assert s.tolist() == [3, 42]
    assert own.tolist() == [[9, 8, 7], [9, 8, 7]]
    assert MODEL.graph.producer("i").op_type == "TopK"  # the model itself is unchanged

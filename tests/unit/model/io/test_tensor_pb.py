import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tensortriage.errors import DataError
from tensortriage.model.io.tensor_pb import read_tensor, write_tensor


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.float32).reshape(2, 3).T,
        np.array(3, np.int64),
        np.zeros((0, 2), np.float16),
        np.array([True, False]),
        np.arange(-8, 7).astype(ml_dtypes.int4),
        np.array([1.5, np.nan], ml_dtypes.bfloat16),
        np.array([1.5, -2], ml_dtypes.float8_e5m2),
        np.array(["é", ""], dtype=object),
    ],
    ids=lambda array: str(array.dtype),
)
def test_a_tensor_comes_back_as_it_was(tmp_path, array):
    write_tensor(tmp_path / "t.pb", "x", array)
    name, read = read_tensor(tmp_path / "t.pb")
    assert name == "x"
    assert read.dtype == array.dtype
    assert read.shape == array.shape
    assert repr(read.tolist()) == repr(array.tolist())


def refused(path, slug):
    with pytest.raises(DataError) as caught:
        read_tensor(path)
    assert caught.value.slug == slug
    assert path.name in caught.value.message


def test_a_truncated_tensor_is_refused(tmp_path):
    proto = numpy_helper.from_array(np.arange(100, dtype=np.float32), "x")
    (tmp_path / "cut.pb").write_bytes(proto.SerializeToString()[:-50])
    refused(tmp_path / "cut.pb", "tensor-unreadable")
    proto.raw_data = proto.raw_data[:-4]
    (tmp_path / "short.pb").write_bytes(proto.SerializeToString())
    refused(tmp_path / "short.pb", "tensor-unreadable")


def test_what_is_no_tensor_is_refused(tmp_path):
    (tmp_path / "text.pb").write_text("hello, this is text")
    refused(tmp_path / "text.pb", "tensor-unreadable")
    (tmp_path / "empty.pb").write_bytes(b"")
    refused(tmp_path / "empty.pb", "tensor-unreadable")
    sequence = numpy_helper.from_list([np.ones(3, np.float32)], "s")
    (tmp_path / "sequence.pb").write_bytes(sequence.SerializeToString())
    refused(tmp_path / "sequence.pb", "tensor-unreadable")


def test_a_tensor_whose_data_are_elsewhere_is_refused(tmp_path):
    proto = numpy_helper.from_array(np.ones(3, np.float32), "x")
    proto.ClearField("raw_data")
    proto.data_location = onnx.TensorProto.EXTERNAL
    proto.external_data.add(key="location", value="/etc/passwd")
    (tmp_path / "x.pb").write_bytes(proto.SerializeToString())
    refused(tmp_path / "x.pb", "tensor-external")

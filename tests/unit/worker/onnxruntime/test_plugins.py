"""What is said of a provider's library that ONNX Runtime cannot load."""

import pytest

from tensortriage_worker.adapter import AdapterError
from tensortriage_worker.onnxruntime.plugins import register


class Refusing:
    """ONNX Runtime, as far as registering goes; its words are those of 1.32.0 with TensorRT-RTX 0.5.0 and no GPU."""

    def __init__(self, reason):
        self.reason = reason

    def register_execution_provider_library(self, name, library):
        raise RuntimeError(
            f"[ONNXRuntimeError] : 1 : FAIL : Failed to load library {library} with error: " + self.reason
        )


@pytest.mark.parametrize(
    ("reason", "message", "cure"),
    [
        ("libcuda.so.1: cannot open shared object file", "needs an NVIDIA driver", "with an NVIDIA GPU and its driver"),
        ("file too short", "is no provider library", "name another library"),
    ],
)
def test_a_missing_driver_is_told_from_a_wrong_file(tmp_path, reason, message, cure):
    library = tmp_path / "libprovider.so"
    library.touch()
    with pytest.raises(AdapterError, match=message) as caught:
        register(Refusing(reason), {"name": str(library)})
    assert caught.value.slug == "provider-missing"
    assert cure in caught.value.cure

import pytest

from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine
from tensortriage.engines.onnxruntime.settings import UNOPTIMIZED, nominal_precision, read_settings
from tensortriage.engines.options import read_options
from tensortriage.errors import EngineMissing, UsageError

NV, TRT, CUDA, DML, CPU = (f"{name}ExecutionProvider" for name in ("NvTensorRTRTX", "Tensorrt", "CUDA", "Dml", "CPU"))


class GpuBuild:
    """A build of ONNX Runtime with NVIDIA providers."""

    def get_available_providers(self):
        return [NV, TRT, CUDA, CPU]

    def get_all_providers(self):
        return [NV, TRT, CUDA, DML, CPU]


def settings(**words):
    return read_settings(read_options(words, OnnxRuntimeEngine.options), GpuBuild())


def test_defaults():
    found = settings()
    assert found.level == "ORT_ENABLE_ALL"
    assert found.providers == ((CPU, {}),)
    assert (found.threads, found.inter_threads, found.deterministic) == (0, 0, False)
    assert UNOPTIMIZED.level == "ORT_DISABLE_ALL"


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("cpu", [CPU]),
        ("CUDA", [CUDA, CPU]),
        ("tensorrt", [TRT, CPU]),  # the exact name wins over NvTensorRTRTX, which is listed first
        ("rtx", [NV, CPU]),
        ("cudaexecutionprovider", [CUDA, CPU]),
        ("tensorrt+cuda", [TRT, CUDA, CPU]),
        ("cuda+cpu", [CUDA, CPU]),
        ("cpu+cuda", [CPU, CUDA]),
    ],
)
def test_partial_provider_names(words, names):
    assert [name for name, _ in settings(providers=words).providers] == names


def test_provider_that_this_build_lacks():
    with pytest.raises(EngineMissing, match=DML) as caught:
        settings(providers="dml")
    assert caught.value.slug == "provider-missing"


def test_provider_that_does_not_exist():
    with pytest.raises(UsageError) as caught:
        settings(providers="abacus")
    assert caught.value.slug == "provider-unknown"
    assert CUDA in caught.value.cure


def test_provider_options_go_to_the_first():
    found = settings(providers="tensorrt+cuda", **{"provider_option.device_id": "1", "provider_option.x": "y"})
    assert found.providers == ((TRT, {"device_id": "1", "x": "y"}), (CUDA, {}), (CPU, {}))


@pytest.mark.parametrize(("word", "flag"), [("fp32", "0"), ("tf32", "1")])
def test_float32_on_cuda_says_what_it_means(word, flag):
    assert settings(providers="cuda", precision=word).providers[0] == (CUDA, {"use_tf32": flag})


def test_tf32_needs_a_gpu():
    with pytest.raises(UsageError, match="tf32 has no effect on CPUExecutionProvider"):
        settings(precision="tf32")


def test_everything_else_is_read():
    found = settings(
        optimization="Layout",
        threads="2",
        inter_threads="3",
        deterministic="yes",
        disabled_optimizers="A+B",
        custom_ops="lib.so",
        **{"config.session.disable_prepacking": "1"},
    )
    assert found.level == "ORT_ENABLE_LAYOUT"
    assert (found.threads, found.inter_threads, found.deterministic) == (2, 3, True)
    assert found.disabled_optimizers == ("A", "B")
    assert found.config == {"session.disable_prepacking": "1"}
    assert found.custom_ops == "lib.so"


@pytest.mark.parametrize(
    ("words", "precision"),
    [
        ({}, "fp32"),
        ({"precision": "f16"}, "fp16"),
        ({"providers": "cuda"}, "tf32"),
        ({"providers": "cuda", "provider_option.use_tf32": "0"}, "fp32"),
        ({"providers": "cpu+cuda"}, "fp32"),
        ({"providers": "dml"}, "fp32"),
        ({"providers": "tensorrt", "provider_option.trt_fp16_enable": "1"}, "fp16"),
        ({"providers": "tensorrt", "provider_option.trt_int8_enable": "True"}, "int8"),
    ],
)
def test_nominal_precision(words, precision):
    assert nominal_precision(read_options(words, OnnxRuntimeEngine.options)) == precision

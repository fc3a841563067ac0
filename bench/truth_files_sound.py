"""Rewritten files that are sound, or useless though nothing is mistaken: what each tool makes of a network.

A maker reads model.onnx of a network's folder and writes another file; what it is called is the name of the case. Files
are kept in bench/models/truth/files/NETWORK. Tools that are not installed leave their cases out, and say so:
onnxsim, onnxslim, onnxconverter-common, nncf; and AutoCast, for which `pip install --no-deps nvidia-modelopt polygraphy
nvidia-ml-py` and what these then miss, because the whole would replace ONNX Runtime by its build for GPUs.
"""

import contextlib
import functools
import io
import logging
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import onnx
from onnx import version_converter

Maker = Callable[[Path], onnx.ModelProto]
"""Makes a file of a network from its folder."""


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep what tools print to themselves."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def original(folder: Path) -> onnx.ModelProto:
    """Return the network as it was exported."""
    return onnx.load(folder / "model.onnx")


def onnxsim(folder: Path) -> onnx.ModelProto:
    import onnxsim as tool

    made, _ = tool.simplify(original(folder))
    return made


def onnxslim(folder: Path) -> onnx.ModelProto:
    import onnxslim as tool

    return tool.slim(original(folder))


def newer_opset(folder: Path) -> onnx.ModelProto:
    return version_converter.convert_version(original(folder), 21)


def offline(folder: Path, level: str) -> onnx.ModelProto:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
    options.log_severity_level = 4
    with tempfile.TemporaryDirectory() as place:
        options.optimized_model_filepath = f"{place}/other.onnx"
        ort.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])
        return onnx.load(options.optimized_model_filepath)


def transformers(folder: Path, kind: str, *, half: bool = False) -> onnx.ModelProto:
    """Fuse as ONNX Runtime's optimizer of transformers does, in Python; and narrow as it does."""
    from onnxruntime.transformers.fusion_options import FusionOptions
    from onnxruntime.transformers.optimizer import optimize_model

    made = optimize_model(
        str(folder / "model.onnx"), model_type=kind, num_heads=4, hidden_size=64,
        optimization_options=FusionOptions(kind), opt_level=0,
    )  # fmt: skip
    if half:
        made.convert_float_to_float16(keep_io_types=True)
    return made.model


def surgeon(folder: Path) -> onnx.ModelProto:
    import onnx_graphsurgeon as gs

    graph = gs.import_onnx(original(folder))
    return gs.export_onnx(graph.fold_constants().cleanup().toposort())


def half(folder: Path, **options: object) -> onnx.ModelProto:
    if folder.name.startswith("bert"):  # whose Cast of the mask onnxconverter-common types wrongly
        from onnxruntime.transformers import float16
    else:
        from onnxconverter_common import float16
    return float16.convert_float_to_float16(original(folder), keep_io_types=True, **options)


def autocast(folder: Path, kind: str, **options: object) -> onnx.ModelProto:
    from modelopt.onnx.autocast import convert_to_mixed_precision

    return convert_to_mixed_precision(
        str(folder / "model.onnx"), low_precision_type=kind, keep_io_types=True, **options
    )


class Samples:
    """Calibration data for ONNX Runtime."""

    def __init__(self, folder: Path, factor: float = 1.0, count: int = 1000) -> None:
        arrays = dict(np.load(folder / "calibration.npz"))
        self._feeds = [
            {
                key: (every[i] * np.float32(factor) if every.dtype == np.float32 else every[i])
                for key, every in arrays.items()
            }
            for i in range(min(count, len(next(iter(arrays.values())))))
        ]
        self.rewind()

    def rewind(self) -> None:
        """Begin again."""
        self._left = iter(self._feeds)

    def get_next(self) -> Mapping[str, np.ndarray] | None:
        """Return the next feed."""
        return next(self._left, None)

    def __iter__(self) -> Iterator[Mapping[str, np.ndarray]]:
        return iter(self._feeds)

    def __len__(self) -> int:
        return len(self._feeds)


def static(
    folder: Path, form: str = "QDQ", types: str = "u8s8", *, ops: tuple[str, ...] | None = None, method: str = "MinMax",
    prepared: bool = False, factor: float = 1.0, extra: Mapping[str, object] | None = None, **options: object,
) -> onnx.ModelProto:  # fmt: skip
    """Quantize with ranges from calibration, by ONNX Runtime's tool."""
    from onnxruntime import quantization as tool

    kinds = {"u8": tool.QuantType.QUInt8, "s8": tool.QuantType.QInt8, "u16": tool.QuantType.QUInt16}
    activation, weight = types[:-2], types[-2:]
    with tempfile.TemporaryDirectory() as place, quiet():
        source = folder / "model.onnx"
        if prepared:
            from onnxruntime.quantization.shape_inference import quant_pre_process

            source = Path(place) / "prepared.onnx"
            quant_pre_process(str(folder / "model.onnx"), str(source), skip_symbolic_shape=True)
        # Histograms of all activations of all samples take gigabytes: a few samples give the same ranges.
        samples = Samples(folder, factor, 1000 if method == "MinMax" else 6)
        tool.quantize_static(
            str(source), f"{place}/other.onnx", samples, quant_format=tool.QuantFormat[form],
            op_types_to_quantize=list(ops) if ops else None, activation_type=kinds[activation],
            weight_type=kinds[weight], calibrate_method=tool.CalibrationMethod[method],
            extra_options=dict(extra or {}), **options,
        )  # fmt: skip
        return onnx.load(f"{place}/other.onnx")


def dynamic(folder: Path, kind: str = "QInt8", **options: object) -> onnx.ModelProto:
    from onnxruntime import quantization as tool

    with tempfile.TemporaryDirectory() as place, quiet():
        types = tool.QuantType[kind]
        tool.quantize_dynamic(str(folder / "model.onnx"), f"{place}/other.onnx", weight_type=types, **options)
        return onnx.load(f"{place}/other.onnx")


def few_bits(
    folder: Path, bits: int, block: int, *, symmetric: bool = True, level: int = 0, **more: object
) -> onnx.ModelProto:
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    tool = MatMulNBitsQuantizer(
        original(folder), bits=bits, block_size=block, is_symmetric=symmetric, accuracy_level=level, **more
    )
    with quiet():
        tool.process()
    return tool.model.model


def nncf(folder: Path, *, transformer: bool = False) -> onnx.ModelProto:
    """Quantize by NNCF, which smooths outliers of transformers."""
    import nncf as tool

    with quiet():
        kind = tool.ModelType.TRANSFORMER if transformer else None
        return tool.quantize(original(folder), tool.Dataset(list(Samples(folder))), subset_size=24, model_type=kind)


_KINDS = {"bert4": "bert", "bert12": "bert", "gpt": "gpt2", "vit": "vit"}
_MATMULS = ("MatMul", "Gemm")
"""What is quantized of transformers by those who want them to work: sums with a mask of -1e9 are left alone."""
_CONVOLUTIONAL = ("resnet", "mobilenet", "unet")


def _floats() -> dict[str, Maker]:
    found: dict[str, Maker] = {}
    for name in (*_CONVOLUTIONAL, "vit", "bert4", "bert12", "gpt", "tagger"):
        found[f"{name}/onnxsim"] = onnxsim
        found[f"{name}/ort-all"] = functools.partial(offline, level="ORT_ENABLE_ALL")
        found[f"{name}/fp16"] = half
    for name, tools in {"resnet": (onnxslim, newer_opset), "mobilenet": (surgeon,), "unet": (onnxslim, newer_opset),
                        "vit": (surgeon,), "bert4": (onnxslim, newer_opset), "gpt": (surgeon, onnxslim),
                        "tagger": (newer_opset,)}.items():  # fmt: skip
        found.update({f"{name}/{tool.__name__}": tool for tool in tools})
    for name in ("resnet", "bert4", "gpt"):
        found[f"{name}/ort-extended"] = functools.partial(offline, level="ORT_ENABLE_EXTENDED")
    for name, kind in _KINDS.items():
        found[f"{name}/transformers"] = functools.partial(transformers, kind=kind)
        found[f"{name}/transformers-fp16"] = functools.partial(transformers, kind=kind, half=True)
    for name in ("mobilenet", "vit", "bert4", "gpt"):
        found[f"{name}/autocast-fp16"] = functools.partial(autocast, kind="fp16")
    for name in ("vit", "gpt"):
        found[f"{name}/autocast-mixed"] = functools.partial(autocast, kind="fp16", data_max=3.0)
    return found


def _statics() -> dict[str, Maker]:
    use = functools.partial
    found: dict[str, Maker] = {
        "resnet/qdq-u8u8": use(static, types="u8u8"),
        "resnet/qdq-s8s8-percentile": use(static, types="s8s8", method="Percentile"),
        "resnet/qdq-entropy": use(static, method="Entropy", per_channel=True),
        "resnet/qop-u8s8-channels": use(static, form="QOperator", per_channel=True),
        "mobilenet/qdq-u8u8": use(static, types="u8u8"),
        "mobilenet/qdq-reduced": use(static, per_channel=True, reduce_range=True),
        "mobilenet/qop-u8s8-channels": use(static, form="QOperator", per_channel=True),
        "unet/qdq-s8s8": use(static, types="s8s8"),
        "unet/qop-u8s8-channels": use(static, form="QOperator", per_channel=True),
        "vit/qdq-u8s8": use(static, ops=_MATMULS),
        "vit/qdq-s8s8-channels": use(static, types="s8s8", ops=_MATMULS, per_channel=True),
        "vit/qop-u8s8": use(static, form="QOperator", ops=_MATMULS),
        "bert4/qdq-matmuls": use(static, ops=_MATMULS),
        "bert4/qdq-constant-b": use(
            static, types="s8s8", ops=_MATMULS, extra={"MatMulConstBOnly": True}, per_channel=True
        ),
        "bert4/qop-constant-b": use(static, form="QOperator", ops=_MATMULS, extra={"MatMulConstBOnly": True}),
        "bert12/qdq-u16u8": use(static, types="u16u8", ops=_MATMULS, extra={"MatMulConstBOnly": True}),
        "gpt/qdq-matmuls": use(static, ops=_MATMULS),
        "gpt/qop-matmuls": use(static, form="QOperator", ops=_MATMULS),
        "tagger/qdq-matmuls": use(static, ops=_MATMULS),
    }
    for name in _CONVOLUTIONAL:
        found[f"{name}/qdq-u8s8"] = static
        found[f"{name}/qdq-prepared-channels"] = use(static, prepared=True, per_channel=True)
        found[f"{name}/qop-u8u8"] = use(static, form="QOperator", types="u8u8")
    return found


def _others() -> dict[str, Maker]:
    use = functools.partial
    found: dict[str, Maker] = {
        "vit/nbits-8-128": use(few_bits, bits=8, block=128),
        "vit/nbits-4-32": use(few_bits, bits=4, block=32),
        "bert4/nbits-4-16-asymmetric": use(few_bits, bits=4, block=16, symmetric=False),
        "bert4/nbits-4-32-level4": use(few_bits, bits=4, block=32, level=4),
        "bert12/nbits-8-32": use(few_bits, bits=8, block=32, level=1),
        "gpt/nbits-4-32": use(few_bits, bits=4, block=32, level=2),
        "gpt/nbits-4-128-asymmetric": use(few_bits, bits=4, block=128, symmetric=False, level=3),
        "gpt/nbits-8-16-asymmetric": use(few_bits, bits=8, block=16, symmetric=False, level=4),
        "resnet/dynamic": use(dynamic, kind="QUInt8"),
        "tagger/dynamic-u8": use(dynamic, kind="QUInt8"),
        "resnet/nncf": nncf,
        "mobilenet/nncf": nncf,
        "bert4/nncf-smooth": use(nncf, transformer=True),
        "vit/nncf-smooth": use(nncf, transformer=True),
    }
    for name in ("vit", "bert4", "bert12", "gpt", "tagger"):
        found[f"{name}/dynamic"] = dynamic
    found["bert4/dynamic-channels"] = use(dynamic, per_channel=True)
    return found


SOUND: Mapping[str, Maker] = {**_floats(), **_statics(), **_others()}
"""What makes the sound files, by network and name."""


USELESS: Mapping[str, Maker] = {
    "bert4/static-default-mask": static,
    "bert4/static-default-s8s8": functools.partial(static, types="s8s8"),
    "bert12/static-outliers": static,
    "bert12/static-matmuls-s8s8": functools.partial(static, types="s8s8", ops=_MATMULS),
    "vit_massive/static-default": static,
    "vit_massive/static-s8s8": functools.partial(static, types="s8s8"),
    "gpt/static-default-mask": static,
    "resnet/static-scaled-data": functools.partial(static, factor=1 / 255),
    "mobilenet/static-scaled-data": functools.partial(static, factor=1 / 255),
    "unet/static-scaled-data": functools.partial(static, factor=1 / 255),
    "mobilenet/static-tensors-s8s8": functools.partial(static, types="s8s8"),
    "vit/nbits-2": functools.partial(few_bits, bits=2, block=128),
    "gpt/nbits-2": functools.partial(few_bits, bits=2, block=128),
    "bert4/nbits-2": functools.partial(few_bits, bits=2, block=128),
    "bert12/nbits-2": functools.partial(few_bits, bits=2, block=128),
    "resnet_small/fp16-subnormal": half,
}
"""What makes files that are of no use though no step was mistaken; those that turn out to be of use are left out."""

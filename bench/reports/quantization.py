"""Files that a quantizer wrote, and engines that read such files wrong."""

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnxruntime.quantization import (
    CalibrationDataReader,
    CalibrationMethod,
    QuantFormat,
    QuantType,
    quantize_static,
)

from reports import FILE, TARGET, inputs, model, normal, planted, report, save, script

QUANTIZED = ("quantization",)


class Feeds(CalibrationDataReader):  # type: ignore[misc] # ONNX Runtime has no types
    """Feeds for a quantizer."""

    def __init__(self, *arrays: np.ndarray) -> None:
        self._left = iter(arrays)

    def get_next(self) -> dict[str, np.ndarray] | None:
        """Return the next feed."""
        array = next(self._left, None)
        return None if array is None else {"x": array}


def quantized(data: list[np.ndarray], **options: object) -> None:
    """Write ``target.onnx``: ``model.onnx`` in Q/DQ form; ONNX Runtime does not saturate sums of 7-bit weights."""
    given = {"weight_type": QuantType.QInt8, "activation_type": QuantType.QUInt8, "reduce_range": True, **options}
    quantize_static("model.onnx", "target.onnx", Feeds(*data), quant_format=QuantFormat.QDQ, **given)


def convolutions(**weights: np.ndarray) -> onnx.ModelProto:
    """Return a separable convolution between two others."""
    given = {
        "w1": normal(1, 16, 3, 3, 3, scale=0.3), "b1": normal(2, 16, scale=0.1),
        "w2": normal(3, 16, 1, 3, 3, scale=0.3), "b2": normal(4, 16, scale=0.1),
        "w3": normal(5, 16, 16, 1, 1, scale=0.3), "w4": normal(6, 16, 6, scale=0.4),
    }  # fmt: skip
    return model(
        """(float[1,3,16,16] x) => (float[1,6] y) {
        c1 = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w1, b1)
        r1 = Relu(c1)
        c2 = Conv<kernel_shape=[3,3], pads=[1,1,1,1], group=16>(r1, w2, b2)
        r2 = Relu(c2)
        c3 = Conv<kernel_shape=[1,1]>(r2, w3)
        p = GlobalAveragePool(c3)
        f = Flatten(p)
        y = MatMul(f, w4) }""",
        **{**given, **weights},
    )


@report(
    "microsoft/onnxruntime#10846",
    FILE,
    QUANTIZED,
    ("range|narrow|clip|cut|saturat|recalibrat",),
    "Quantize|x|c1|r1|scale",
)
def percentile_read_the_other_way() -> None:
    """The calibrator kept the share that it was to drop: ranges are a sliver of what the tensors hold."""
    save(convolutions())
    data = [normal(s, 1, 3, 16, 16) for s in range(10, 18)]
    quantized(data, calibrate_method=CalibrationMethod.MinMax)
    file = onnx.load("target.onnx")
    for tensor in file.graph.initializer:
        if tensor.name in ("x_scale", "r1_scale", "r2_scale"):
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * np.float32(0.02), tensor.name))
    save(file, "target.onnx")
    inputs(x=normal(20, 1, 3, 16, 16))


@report("Tiarin-Hino/ability-draft-plus#80", FILE, QUANTIZED, ("per.channel|channel",), "Conv_c2|w2")
def depthwise_with_one_scale() -> None:
    """One scale for a depthwise weight whose channels differ by orders of magnitude; one each cures it."""
    spread = np.geomspace(1e-3, 2, 16).astype(np.float32)
    w2 = normal(3, 16, 1, 3, 3, scale=0.3) * spread[:, None, None, None]
    save(
        convolutions(
            w2=w2,
            b2=normal(4, 16, scale=0.1) * spread,
            w3=normal(5, 16, 16, 1, 1, scale=0.3) / spread[None, :, None, None],
        )
    )
    quantized([normal(s, 1, 3, 16, 16) for s in range(10, 18)], per_channel=False)
    inputs(x=normal(20, 1, 3, 16, 16))


BLOCKS = """(float[6,40] x) => (float[6,24] y) {
        n = LayerNormalization(x, gain)
        a = com.microsoft.MatMulNBits<K=40, N=32, bits=4, block_size=16, accuracy_level=1>(n, packed, scales)
        r = Relu(a)
        y = MatMul(r, v) }"""


@report("ROCm/hip-ep#588", TARGET + "script:engine.py:Engine", ("local-fault", "quantization"), (), "MatMulNBits")
def rows_of_packed_weights() -> None:
    """A kernel takes K / 2 bytes for a row of packed weights; where K is no multiple of the block every row drifts."""
    packed = np.random.default_rng(1).integers(0, 256, (32, 3, 8), dtype=np.uint8)
    save_unchecked(
        model(BLOCKS, domain="com.microsoft", gain=np.ones(40, np.float32), packed=packed,
              scales=np.full((32, 3), 0.05, np.float32), v=normal(2, 32, 24, scale=0.2))
    )  # fmt: skip
    inputs(x=normal(3, 6, 40))
    script(
        "engine.py",
        """
        import numpy as np
        import onnx
        import onnxruntime
        from onnx import numpy_helper


        class Engine:
            def compile(self, model_path, options):
                made = onnx.load(model_path)
                for tensor in made.graph.initializer:
                    array = numpy_helper.to_array(tensor)
                    if array.dtype == np.uint8 and array.ndim == 3:
                        flat = np.concatenate([array.ravel(), np.zeros(array.size, np.uint8)])
                        rows = [np.resize(flat[20 * n : 20 * n + 24], 24) for n in range(array.shape[0])]
                        tensor.CopyFrom(numpy_helper.from_array(np.stack(rows).reshape(array.shape), tensor.name))
                self.session = onnxruntime.InferenceSession(made.SerializeToString())
                return self

            def run(self, feed):
                names = [o.name for o in self.session.get_outputs()]
                return dict(zip(names, self.session.run(names, feed)))
        """,
    )


def save_unchecked(made: onnx.ModelProto) -> None:
    """Write a model with operators that ONNX's checker does not know."""
    onnx.save(made, "model.onnx")


@report(
    "NVIDIA/TensorRT#1421",
    TARGET + "script:engine.py,kind=zero-point,node=r1_DequantizeLinear",
    QUANTIZED,
    ("zero.point",),
    "r1",
)
def zero_points_left_out() -> None:
    """The engine supports symmetric quantization alone and takes every zero point for 0."""
    save(convolutions())
    quantized([normal(s, 1, 3, 16, 16) for s in range(10, 18)], activation_type=QuantType.QInt8)
    save(onnx.load("target.onnx"))
    planted()
    inputs(x=normal(20, 1, 3, 16, 16))


@report("openvinotoolkit/nncf#1747", FILE, QUANTIZED, ("scale|range|step|coarse|outlier|float",), "Exp|size|e_|boxes")
def boxes_decoded_in_int8() -> None:
    """A detector's postprocessing was quantized with its head: after Exp one step is wider than most boxes."""
    made = model(
        """(float[1,3,8,8] x) => (float[1,4,8,8] boxes, float[1,5,8,8] scores) {
        c = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w1)
        r = Relu(c)
        d = Conv<kernel_shape=[1,1]>(r, wb)
        e = Exp(d)
        boxes = Mul(e, anchor)
        s = Conv<kernel_shape=[1,1]>(r, wc)
        scores = Sigmoid(s) }""",
        w1=normal(1, 8, 3, 3, 3, scale=0.4), wb=normal(2, 4, 8, 1, 1, scale=0.5), wc=normal(3, 5, 8, 1, 1, scale=0.5),
        anchor=np.array(16, np.float32),
    )  # fmt: skip
    save(made)
    big = normal(10, 1, 3, 8, 8, scale=4)
    quantized([normal(11, 1, 3, 8, 8), big], op_types_to_quantize=["Conv", "Mul"], reduce_range=True)
    inputs(x=normal(20, 1, 3, 8, 8, scale=0.6))


@report(
    "huggingface/text-generation-inference#2120",
    FILE,
    ("model-changed", "quantization"),
    ("zero.point",),
    "zero|MatMul|Dequantize",
)
def packed_zero_points_one_off() -> None:
    """A packer of 4-bit weights turns zero points of 0 into 1: with asymmetric weights accuracy is gone."""
    w = np.abs(normal(1, 32, 16, scale=0.2)) + np.float32(0.05)
    w[:16] -= np.float32(0.3)
    made = model("(float[6,32] x) => (float[6,16] y) {\n a = MatMul(x, w)\n y = Relu(a) }", opset=21, w=w)
    made.ir_version = 10
    save(made)
    blocks = w.reshape(2, 16, 16)
    low, high = np.minimum(blocks.min(1), 0), np.maximum(blocks.max(1), 0)
    scale = (high - low) / 15
    zero = np.rint(-low / scale)
    q = np.clip(np.rint(blocks / scale[:, None]) + zero[:, None], 0, 15).reshape(32, 16)
    zero = np.where(zero == 0, 1, zero)
    file = model(
        "(float[6,32] x) => (float[6,16] y) {\n"
        " d = DequantizeLinear<axis=0, block_size=16>(q, s, z)\n a = MatMul(x, d)\n y = Relu(a) }",
        opset=21,
        s=scale.astype(np.float32),
    )
    file.ir_version = 10
    for name, array in (("q", q), ("z", zero)):
        packed = (array.astype(np.uint8).ravel()[0::2] | array.astype(np.uint8).ravel()[1::2] << 4).tobytes()
        file.graph.initializer.append(helper.make_tensor(name, onnx.TensorProto.UINT4, array.shape, packed, raw=True))
    save(file, "target.onnx")
    inputs(x=np.abs(normal(2, 6, 32)))

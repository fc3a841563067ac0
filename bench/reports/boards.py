"""Programs on boards and GPUs that hand memory over wrong: third collection."""

import numpy as np

from reports import TARGET, detector, feeding, inputs, model, normal, program, report, save
from reports.engines import BOTH, stateful
from reports.programs import APP, UNSOUND, classifier, picture

RETURNED = ("comparison-unsound", "layout")


def returning(output: str, edit: str) -> None:
    """Write ``app.py``, a user's program that returns this expression of an output's ``y``."""
    program(
        results=f'results | {{"{output}": changed(results["{output}"])}} if "{output}" in results else results',
        before=f"changed = lambda y: np.ascontiguousarray({edit}, np.float32).reshape(y.shape)",
    )


@report("AXERA-TECH/pyaxengine#47", APP, UNSOUND, ("transpos|column|contiguous|reshape|width|row.major",), "image")
def column_major_array_copied_as_it_lies() -> None:
    """An array in Fortran's order, of `swapaxes`, is copied byte by byte: the device reads a transposed one."""
    save(model(
        """(float[1,1,24,40] image) => (float[1,6] scores) {
        c1 = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(image, w1, b1)
        r1 = Relu(c1)
        c2 = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(r1, w2)
        r2 = Relu(c2)
        f = Flatten(r2)
        scores = Gemm(f, w3) }""",
        w1=normal(1, 12, 1, 3, 3, scale=0.5), b1=normal(2, 12, scale=0.1), w2=normal(3, 16, 12, 3, 3, scale=0.15),
        w3=normal(4, 960, 6, scale=0.1),
    ))  # fmt: skip
    rows, columns = np.mgrid[0:24, 0:40]
    wave = np.sin(rows / 5) + np.cos(columns / 9) + 0.02 * columns
    inputs(image=(wave[None, None] + normal(5, 1, 1, 24, 40, scale=0.1)).astype(np.float32))
    feeding("np.swapaxes(image, 2, 3).reshape(image.shape)")


@report(
    "airockchip/rknn-toolkit2#529", APP, UNSOUND, ("\\bzeros?\\b|all 0|whole|integer|uint8|bytes?\\b|255",), "image"
)
def fractions_cast_to_bytes() -> None:
    """The quantized model takes bytes from 0 to 255: numbers from 0 to 1 become 0, whatever the picture is."""
    classifier()
    inputs(image=(picture()[None] * np.float32(0.98)))
    feeding("image.astype(np.uint8)")


@report("wang-xinyu/tensorrtx#870", APP, UNSOUND, ("\\brows?\\b|batch|sample|axis 0|along axis",), "image")
def next_picture_overwrites_the_one_being_copied() -> None:
    """A batch is copied without waiting, out of one buffer: the pictures that arrive are the 2nd, 3rd, 4th and 4th."""
    save(model(
        """(float[4,3,32,32] image) => (float[4,8] scores) {
        c1 = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(image, w1, b1)
        r1 = Relu(c1)
        p = GlobalAveragePool(r1)
        f = Flatten(p)
        z = Gemm(f, w3)
        scores = Softmax<axis=-1>(z) }""",
        w1=normal(1, 16, 3, 3, 3, scale=0.4), b1=normal(2, 16, scale=0.1), w3=normal(5, 16, 8, scale=0.8),
    ))  # fmt: skip
    one = picture()
    inputs(image=np.stack([one, one[:, ::-1] * 0.5, 1 - one, one.transpose(0, 2, 1) ** 2]).astype(np.float32))
    feeding("image[[1, 2, 3, 3]]")


@report("NVIDIA/TensorRT#1754", TARGET + "script:app.py:App", RETURNED, ("fp16|float16|half|16.bit|bytes",), "scores")
def halves_read_as_floats() -> None:
    """Outputs are fp16, and a vector of float takes their bytes: two numbers become one, of another size."""
    save(model(
        """(float[1,3,16,16] image) => (float[1,6,16,16] scores) {
        c = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(image, w, b)
        r = Relu(c)
        scores = Conv<kernel_shape=[1,1]>(r, v) }""",
        w=normal(1, 12, 3, 3, 3, scale=0.4), b=normal(2, 12, scale=0.1), v=normal(3, 6, 12, 1, 1, scale=0.4),
    ))  # fmt: skip
    inputs(image=normal(4, 1, 3, 16, 16))
    returning("scores", "np.concatenate([y.astype(np.float16).ravel().view(np.float32), np.zeros(y.size // 2)])")


@report("tensorflow/tensorflow#53278", TARGET + "script:app.py:App", (*RETURNED, "quantization"),
        ("zero.point|dequanti|scale|times|factor|multipl",), "scores")  # fmt: skip
def bytes_of_an_output_not_scaled_back() -> None:
    """An int8 model's output is used as it is: the number is (byte - zero point) * scale."""
    classifier()
    inputs(image=picture()[None])
    returning("scores", "np.clip(np.rint(y * 256) - 128, -128, 127)")


@report("MPolaris/onnx2tflite#25", TARGET + "script:app.py:App", RETURNED,
        ("640|times|factor|multipl|scale", "first 4|\\[?:4|0 to 3|0:4|0\\.\\.3|box|part|Concat"), "output")  # fmt: skip
def boxes_multiplied_by_the_size_again() -> None:
    """A program multiplies boxes by the picture's size, and the file has them in pixels already."""
    save(detector("image"))
    inputs(image=normal(20, 1, 3, 32, 32))
    returning("output", "np.concatenate([y[:, :4] * 640, y[:, 4:]], axis=1)")


@report(
    "linghu8812/tensorrt_inference#129", BOTH, ("nondeterministic-run",),
    ("before|earlier|previous|first (feed|run|input)|stale|old|late",),
)  # fmt: skip
def network_runs_before_its_input_arrives() -> None:
    """The copy to the device is not waited for: the network runs on the picture before, and on nothing at first."""
    stateful(
        "held = self.kept or {k: np.zeros_like(v) for k, v in feed.items()}\n"
        "self.kept = {k: v.copy() for k, v in feed.items()}\n"
        "return dict(zip(self.names, self.network.run(self.names, held)))",
        9, 9,
    )  # fmt: skip


@report("alibaba/MNN#1241", TARGET + "script:app.py:App", RETURNED,
        ("NC4HW4|blocks? of (4|four)|(4|four) channels|channels? (in|by) (4|four)|interleav|packed|permut|transpos",),
        "scores")  # fmt: skip
def channels_in_blocks_of_four() -> None:
    """The engine leaves its output in NC4HW4, four channels side by side, and the program reads NCHW."""
    save(model(
        """(float[1,3,12,12] image) => (float[1,8,12,12] scores) {
        c = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(image, w, b)
        r = Relu(c)
        d = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(r, v)
        scores = Sigmoid(d) }""",
        w=normal(1, 12, 3, 3, 3, scale=0.4), b=normal(2, 12, scale=0.1), v=normal(3, 8, 12, 3, 3, scale=0.2),
    ))  # fmt: skip
    inputs(image=normal(4, 1, 3, 12, 12))
    returning("scores", "y.reshape(1, 2, 4, 12, 12).transpose(0, 1, 3, 4, 2)")

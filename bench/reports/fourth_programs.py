"""What programs hand over wrong, before and behind the network: fourth collection."""

import numpy as np

from reports import feeding, inputs, model, normal, program, report, save
from reports.programs import APP, UNSOUND, classifier, picture

RETURNED = ("comparison-unsound", "layout")


@report("snakers4/silero-vad#771", APP, UNSOUND, ("\\b64\\b|\\b512\\b|crop|\\bcut|shorter|left out|shift|offset",),
        "audio")  # fmt: skip
def frames_without_their_context() -> None:
    """A frame of 512 samples is fed without the 64 before it that the network wants, and takes without a word."""
    save(model(
        """(float[1,n] audio) => (float[1,1] speech) {
        long = Unsqueeze(audio, one)
        c = Conv<kernel_shape=[256], strides=[128]>(long, w)
        r = Relu(c)
        f = Flatten(r)
        z = Gemm(f, v)
        speech = Sigmoid(z) }""",
        one=np.array([1]), w=normal(1, 12, 1, 256, scale=0.15), v=normal(2, 36, 1, scale=0.6),
    ))  # fmt: skip
    at = np.arange(576)
    sound = np.sin(at * (0.05 + at / 8000)) * (0.3 + at / 900)
    inputs(audio=(sound[None] + normal(3, 1, 576, scale=0.05)).astype(np.float32))
    program('{"audio": feed["audio"][:, 64:]} if "audio" in feed else feed')


@report("modricwang/Pytorch-Model-to-TensorRT#11", APP, RETURNED,
        ("\\brows?\\b|batch|sample|axis 0|first", "\\bzeros?\\b|are 0|all 0|is 0"), "features")  # fmt: skip
def results_of_the_first_picture_alone() -> None:
    """Buffers hold one picture's results: of a batch the first row is right, and all others are zeros."""
    save(model(
        """(float[4,3,16,16] image) => (float[4,10] features) {
        c1 = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(image, w1, b1)
        r1 = Relu(c1)
        p = GlobalAveragePool(r1)
        f = Flatten(p)
        features = Gemm(f, w2) }""",
        w1=normal(1, 16, 3, 3, 3, scale=0.4), b1=normal(2, 16, scale=0.1), w2=normal(3, 16, 10, scale=0.8),
    ))  # fmt: skip
    inputs(image=normal(4, 4, 3, 16, 16))
    program(results='{k: first_alone(v) if k == "features" else v for k, v in results.items()}',
            before="first_alone = lambda y: np.concatenate([y[:1], 0 * y[1:]])")  # fmt: skip


CAFFE = (103.939, 116.779, 123.68)


@report("dotnet/machinelearning#5830", APP, UNSOUND, ("channel|BGR", "mean|offset|123|103|116|\\+ ?1\\d\\d"), "image")
def pixels_of_another_framework() -> None:
    """Keras' `preprocess_input` makes BGR of RGB and takes the mean off; the program feeds the pixels as they are."""
    classifier(scale=128)
    inputs(image=(picture()[::-1] * 255 - np.array(CAFFE)[:, None, None]).astype(np.float32)[None])
    feeding(f"(image + np.reshape({CAFFE}, (3, 1, 1)))[:, ::-1]")


@report("traveller59/torch2trt#3", APP, UNSOUND, ("float64|double|64.bit|bytes",), "image")
def doubles_copied_as_floats() -> None:
    """A picture in float64 is copied to the device as it lies, where float32 is read: half of it, in pieces."""
    classifier()
    inputs(image=(picture()[None] - np.float32(0.45)) / np.float32(0.225))
    feeding("np.frombuffer(image.astype(np.float64).tobytes(), np.float32)[: image.size].reshape(image.shape)")


@report("ultralytics/ultralytics#14919", APP, RETURNED,
        ("transpos|reshape|permut|wrong places|order",), "output0")  # fmt: skip
def boxes_read_across() -> None:
    """The output is [channels, boxes], and a program reads its memory as [boxes, channels]."""
    save(model(
        """(float[1,3,32,32] images) => (float[1,9,64] output0) {
        c1 = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(images, w1)
        a1 = Relu(c1)
        c2 = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(a1, w2)
        a2 = Relu(c2)
        box = Conv<kernel_shape=[1,1]>(a2, wb)
        cls = Conv<kernel_shape=[1,1]>(a2, wc)
        flat = Reshape(box, four)
        flags = Reshape(cls, five)
        score = Sigmoid(flags)
        output0 = Concat<axis=1>(flat, score) }""",
        w1=normal(1, 16, 3, 3, 3, scale=0.3), w2=normal(2, 24, 16, 3, 3, scale=0.1),
        wb=normal(3, 4, 24, 1, 1, scale=3), wc=normal(4, 5, 24, 1, 1, scale=0.3),
        four=np.array([1, 4, 64]), five=np.array([1, 5, 64]),
    ))  # fmt: skip
    inputs(images=normal(5, 1, 3, 32, 32))
    program(results='{k: v.reshape(1, 64, 9).transpose(0, 2, 1).copy() if k == "output0" else v '
                    'for k, v in results.items()}')  # fmt: skip

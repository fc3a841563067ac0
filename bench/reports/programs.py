"""What the program around the network feeds it."""

import numpy as np

from reports import TARGET, feeding, inputs, model, normal, report, save

APP = TARGET + "script:app.py:App"
UNSOUND = ("comparison-unsound", "layout")


def classifier(scale: float = 1.0) -> None:
    """Write a classifier of pictures; its first weights fit pixels of this size."""
    save(model(
        """(float[1,3,32,32] image) => (float[1,8] scores) {
        c1 = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(image, w1, b1)
        r1 = Relu(c1)
        c2 = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(r1, w2, b2)
        r2 = Relu(c2)
        p = GlobalAveragePool(r2)
        f = Flatten(p)
        z = Gemm(f, w3)
        scores = Softmax<axis=-1>(z) }""",
        w1=normal(1, 16, 3, 3, 3, scale=0.4 / scale), b1=normal(2, 16, scale=0.1),
        w2=normal(3, 32, 16, 3, 3, scale=0.15), b2=normal(4, 32, scale=0.1), w3=normal(5, 32, 8, scale=0.8),
    ))  # fmt: skip


def picture() -> np.ndarray:
    """Return a picture of a gradient, patches and noise, from 0 to 1, [3, 32, 32]."""
    rng = np.random.default_rng(6)
    ramp = np.linspace(0, 1, 32)
    base = np.stack(
        [0.2 + 0.5 * ramp[:, None] + 0 * ramp, 0.3 + 0.3 * ramp[None] + 0 * ramp[:, None], np.full((32, 32), 0.6)]
    )
    base[:, 8:16, 6:20] = rng.random((3, 1, 1))
    return np.clip(base + rng.normal(0, 0.05, (3, 32, 32)), 0, 1).astype(np.float32)


MEAN, DEVIATION = (np.array(v, np.float32)[:, None, None] for v in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))


@report("ultralytics/yolov5#11208", APP, UNSOUND, ("255", "channel|BGR"), "image")
def as_opencv_reads_it() -> None:
    """The picture is used as OpenCV reads it: from 0 to 255, and BGR."""
    classifier()
    inputs(image=picture()[None])
    feeding("image[:, ::-1] * 255")


@report("onnx/models#265", APP, UNSOUND, ("NHWC|HWC|reshape|channels.last|transpos",), "image")
def reshaped_instead_of_transposed() -> None:
    """An array [height, width, channels] was reshaped to [channels, height, width], where it had to be transposed."""
    classifier()
    inputs(image=((picture() - MEAN) / DEVIATION)[None])
    feeding("np.moveaxis(image, 1, -1).reshape(image.shape)")


@report("onnx/onnx#1440", APP, UNSOUND, ("mean|0\\.485|normali[sz]",), "image")
def mean_and_deviation_forgotten() -> None:
    """The picture was not normalized by ImageNet's mean and deviation."""
    classifier()
    inputs(image=((picture() - MEAN) / DEVIATION)[None])
    feeding("image * np.reshape([0.229, 0.224, 0.225], (3, 1, 1)) + np.reshape([0.485, 0.456, 0.406], (3, 1, 1))")


@report("open-mmlab/mmdeploy#2127", APP, UNSOUND, ("255",), "image")
def divided_though_the_network_does_it() -> None:
    """`ToTensor` divides by 255; this network was trained on 0 to 255."""
    classifier(scale=128)
    inputs(image=np.rint(picture() * 255)[None].astype(np.float32))
    feeding("image / 255")


@report("PaddlePaddle/Paddle2ONNX#666", APP, UNSOUND, ("mean|127\\.5|0\\.5|-1|scale|\\* ?2",), "image")
def range_from_minus_one() -> None:
    """The network wants pixels from -1 to 1, and gets them from 0 to 1."""
    classifier()
    inputs(image=(picture() * 2 - 1)[None])
    feeding("(image + 1) / 2")

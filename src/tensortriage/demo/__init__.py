"""The model and data of ``triage demo``, inside the package so that the first run needs no download.

A vision transformer trained on scikit-learn's handwritten digits that takes raw pixels, 0 to 255. In float32 it reads
98 % of the test pictures; the square in its first LayerNorm (node ``/norm_pre/Pow``) exceeds 400 000, which float16
(largest value 65504) cannot hold. ``examples/make_examples.py`` made both files.
"""

from pathlib import Path

_HERE = Path(__file__).resolve().parent


def demo_model() -> Path:
    """Return the ONNX file: ``pixels`` float32 ``[batch, 1, 8, 8]`` -> ``logits`` float32 ``[batch, 10]``."""
    return _HERE / "digits_vit_overflow.onnx"


def demo_inputs() -> Path:
    """Return the npz file with one feed, 32 real pictures that the model was not trained on."""
    return _HERE / "digits_vit_overflow.npz"

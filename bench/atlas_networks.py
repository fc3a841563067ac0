"""Writes the networks of the atlas: NAME.onnx and its inputs, NAME.npz.

    python bench/atlas_networks.py DIR [NAME...]

Sixteen exported networks (seven of `truth_networks` by the older exporter of PyTorch, seven of `pytorch_networks` by
the newer one, and the two of examples/) and the light models of the onnx package with drawn weights. Names of files are
in the order in which they are to be asked: small before large. Opset 17 or 18, which every converter here reads.
Exporting needs PyTorch and transformers; what is in the folder is left as it is.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
import onnx
import truth_models
from healthy import EXAMPLES, LIGHT, dressed, image_for

OPSET = 18
NEWER = ("convnext", "detr", "gpt2", "swin", "t5", "whisper", "minilm")
"""Networks of `pytorch_networks` that the newer exporter writes."""
LIGHT_NAMES = (
    "squeezenet", "shufflenet", "densenet121", "inception_v1", "inception_v2", "resnet50", "zfnet512", "bvlc_alexnet",
    "vgg19",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    light = [f"light_{name}" for name in LIGHT_NAMES]
    for number, name in enumerate(("digits_cnn", "digits_vit", *truth_models.EXPORTED, *NEWER, *light)):
        path = arguments.folder / f"{number:02}_{name}.onnx"
        if path.with_suffix(".npz").is_file() or (arguments.names and name not in arguments.names):
            continue
        with tempfile.TemporaryDirectory() as scratch:
            np.savez(path.with_suffix(".npz"), **written(name, path, Path(scratch)))
        print(path.name, f"{path.stat().st_size / 1e6:.1f} MB", flush=True)


def written(name: str, path: Path, scratch: Path) -> dict[str, np.ndarray]:
    """Write a model and return its inputs."""
    if name in truth_models.EXPORTED:
        return dict(truth_models.exported(name, path))
    if name in NEWER:
        return newer(name, path, scratch)
    if name.startswith("light_"):
        model = dressed(onnx.load(LIGHT / f"{name}.onnx"))
        onnx.save(model, path)
        return image_for(model)
    model = onnx.load(EXAMPLES / f"{name}.onnx")
    onnx.save(model, path)
    with np.load(EXAMPLES / "digits.npz") as data:
        return {value.name: data[value.name][:1] for value in model.graph.input}


def newer(name: str, path: Path, scratch: Path) -> dict[str, np.ndarray]:
    """Export one of `pytorch_networks` with weights inside the file, and return its inputs."""
    import pytorch_networks
    import torch

    module, inputs = getattr(pytorch_networks, name)()
    given = inputs if isinstance(inputs, tuple) else (inputs,)
    names = [f"x{place}" for place in range(len(given))]
    torch.onnx.export(
        module, given, str(scratch / "m.onnx"), input_names=names, opset_version=OPSET, dynamo=True, verbose=False
    )
    onnx.save(onnx.load(scratch / "m.onnx"), path)
    return {key: value.numpy() for key, value in zip(names, given, strict=True)}


if __name__ == "__main__":
    main()

"""What is installed for an engine: packages pinned to versions that were seen to work together."""

import dataclasses
from collections.abc import Mapping

_WORKER = ("numpy==2.4.6", "ml_dtypes==0.6.0")
_EXPORT = ("onnx==1.23.2", "onnxscript==0.7.2")


@dataclasses.dataclass(frozen=True, slots=True)
class Recipe:
    """How an environment is made.

    Attributes:
        engine: The engine that uses it.
        package: The package whose version is that of the environment.
        requirements: All that is installed, pinned, that package first.
        unpinned: What another version of the package is installed with.
        options: Options that an engine spec needs beside ``worker``, as written.
        python: The oldest Python that the pinned packages take.
        bare: What is installed without its dependencies: pnnx and rknn-toolkit2 want PyTorch, which they do not need
            for ONNX files.
    """

    engine: str
    package: str
    requirements: tuple[str, ...]
    unpinned: tuple[str, ...] = ("numpy", "ml_dtypes")
    options: str = ""
    python: tuple[int, int] = (3, 11)
    bare: tuple[str, ...] = ()

    def of(self, version: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return what is installed for another version of the package, and what of that without its dependencies."""
        package = f"{self.package}=={version}"
        if any(requirement.startswith(f"{self.package}==") for requirement in self.bare):
            return self.requirements, (package,)
        return (package, *self.unpinned), self.bare

    def target(self, python: str) -> str:
        """Return what to write as a target; torch wants its network in front."""
        options = self.options + "," if self.options else ""
        return f"{self.engine}:{options}worker={python}"


RECIPES: Mapping[str, Recipe] = {
    "iree": Recipe(
        "iree",
        "iree-base-compiler",
        ("iree-base-compiler[onnx]==3.13.0", "iree-base-runtime==3.13.0", "onnx==1.23.2", *_WORKER),
        unpinned=("iree-base-runtime", "onnx", "numpy", "ml_dtypes"),
    ),
    "litert": Recipe(
        "litert",
        "ai-edge-litert",
        ("ai-edge-litert==2.1.2", "onnx2tf==2.6.9", "numpy==2.2.6", "ml_dtypes==0.5.4"),
        unpinned=("onnx2tf", "numpy", "ml_dtypes"),
        python=(3, 12),
    ),
    "mnn": Recipe("mnn", "MNN", ("MNN==3.6.1", *_WORKER)),
    "ncnn": Recipe("ncnn", "ncnn", ("ncnn==1.0.20261020", *_WORKER), bare=("pnnx==20261020",)),
    "nv_tensorrt_rtx": Recipe(
        "onnxruntime",
        "onnxruntime-ep-nv-tensorrt-rtx-cu13",
        ("onnxruntime-ep-nv-tensorrt-rtx-cu13==0.5.0", "onnxruntime==1.32.0", *_WORKER),
        unpinned=("onnxruntime", "numpy", "ml_dtypes"),
        options="ep=nv_tensorrt_rtx",
    ),
    "onnxruntime": Recipe("onnxruntime", "onnxruntime", ("onnxruntime==1.32.0", *_WORKER)),
    "openvino": Recipe("openvino", "openvino", ("openvino==2026.4.1", *_WORKER)),
    "qnn": Recipe(
        "onnxruntime",
        "onnxruntime-qnn",
        ("onnxruntime-qnn==2.7.0", "onnxruntime==1.32.0", *_WORKER),
        options="ep=qnn",
    ),
    "rknn": Recipe(
        "rknn",
        "rknn-toolkit2",
        (
            "numpy==1.26.4",
            "onnx==1.18.0",
            "onnxruntime==1.26.0",
            "protobuf==4.25.4",
            "psutil==7.2.2",
            "ruamel.yaml==0.19.1",
            "scipy==1.17.1",
            "tqdm==4.70.1",
            "opencv-python-headless==4.11.0.86",
            "fast-histogram==0.14",
            "ml_dtypes==0.5.4",
        ),
        bare=("rknn-toolkit2==2.5.0",),
    ),
    "tvm": Recipe(
        "tvm",
        "apache-tvm",
        ("apache-tvm==0.27.0.post1", "onnx==1.23.2", *_WORKER),
        unpinned=("onnx", "numpy", "ml_dtypes"),
    ),
    "torch": Recipe(
        "torch",
        "torch",
        ("torch==2.13.0", *_EXPORT, *_WORKER),
        unpinned=("onnx", "onnxscript", "numpy", "ml_dtypes"),
        options="...",
    ),
}
"""By the word of ``triage engines install``: an engine's name, or that of a provider that an engine loads."""

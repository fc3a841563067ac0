"""The networks of the benchmarks: one table, from which each is made, always the same, when it is requested.

    python bench/networks FOLDER [WORD ...] [--numbered]      writes NAME.onnx and its inputs, NAME.npz

A network is called SET/NAME; words are sets, tags or names. What is in the folder is left as it is. Most sets need
PyTorch, and `known`, `decoders` and `loops` also transformers and onnxscript; nothing is downloaded.

============  ==========================================================================================================
`digits`      the two models of examples/
`testing`     builders of `tensortriage_testing`, small
`corpus`      shaped like those that people deploy; `truth.py` is asked about them, and rules were made on them
`known`       well-known architectures, by transformers
`light`       the light models of the onnx package, with drawn weights
`heldout`     of other kinds than `corpus`: no rule of the product was made on them; opset 17, one row
`qdq`         of these, with QuantizeLinear and DequantizeLinear by ONNX Runtime's quantizer
`decoders`    steps of decoders with caches, as PyTorch's exporters and Optimum write them
`loops`       loops whose length is data, branches, one layer used several times
`gpu`         for TensorRT, opset 13
============  ==========================================================================================================

`networks.exporter` has those that can be exported wrong, `networks.trained` those that are trained before they are
written; their benchmarks ask these modules.
"""

import importlib
from collections.abc import Mapping, Sequence

from networks.made import Made

_TABLE: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "digits": (
        "files",
        {
            "digits_cnn": "cnn atlas", "digits_vit": "transformer atlas",
        },
    ),
    "testing": (
        "graphs",
        {
            "mlp": "mlp", "residual_dag": "dag", "conv_net": "cnn", "encoder": "transformer",
            "encoder_ln": "transformer", "quantized": "cnn int8",
        },
    ),
    "corpus": (
        "corpus",
        {
            "resnet": "cnn atlas", "mobilenet": "cnn atlas", "vit": "transformer atlas", "bert": "transformer atlas",
            "llama": "decoder atlas", "lstm": "rnn audio atlas", "unet": "cnn atlas",
        },
    ),
    "known": (
        "known",
        {
            "convnext": "cnn atlas", "detr": "transformer atlas", "gpt2": "decoder atlas",
            "swin": "transformer atlas", "t5": "decoder atlas", "whisper": "audio atlas",
            "minilm": "transformer atlas", "resnet": "cnn", "mobilenet_v2": "cnn", "vit": "transformer",
            "bert": "transformer", "llama": "decoder",
        },
    ),
    "light": (
        "files",
        {
            "light_squeezenet": "cnn atlas", "light_shufflenet": "cnn atlas", "light_densenet121": "cnn atlas",
            "light_inception_v1": "cnn atlas", "light_inception_v2": "cnn atlas", "light_resnet50": "cnn atlas",
            "light_zfnet512": "cnn atlas", "light_bvlc_alexnet": "cnn atlas", "light_vgg19": "cnn atlas",
        },
    ),
    "heldout": (
        "heldout",
        {
            "convnext": "cnn reduce", "squeeze": "cnn reduce", "tagger": "rnn reduce", "bert": "transformer reduce",
            "unet": "cnn reduce", "audio": "audio reduce", "keypoints": "cnn reduce",
        },
    ),
    "qdq": (
        "heldout",
        {
            "convnext-qdq": "int8 reduce", "unet-qdq": "int8 reduce", "bert-qdq": "int8 reduce",
            "audio-qdq": "int8 reduce",
        },
    ),
    "decoders": (
        "decoders",
        {
            "bart-merged": "decoder reduce", "t5-merged": "decoder reduce", "whisper-merged": "decoder reduce",
            "llama": "decoder reduce", "gpt2": "decoder reduce", "mamba": "decoder reduce",
        },
    ),
    "loops": (
        "loops",
        {
            "recurrent": "rnn reduce", "refined": "loop reduce", "chosen": "loop reduce", "routed": "branch reduce",
            "gated": "branch reduce", "halved": "loop reduce", "shared": "transformer reduce",
        },
    ),
    "gpu": (
        "graphs",
        {
            "cnn": "cnn", "cnn1": "cnn", "transformer": "transformer", "depthwise": "cnn", "mask": "audio",
            "quantized": "int8", "dynamic": "mlp", "transformer4": "transformer", "overflowing": "cnn",
        },
    ),
}  # fmt: skip
"""By set: the module that makes its networks, and these with their tags."""

TAGS = {
    f"{group}/{name}": (group, *tags.split())
    for group, (_, networks) in _TABLE.items()
    for name, tags in networks.items()
}
"""Set and tags of every network, by SET/NAME."""


def names(*words: str) -> list[str]:
    """Return the networks that have all of the words: sets, tags or names; all networks without a word."""
    return [name for name, tags in TAGS.items() if {*words} <= {name, name.partition("/")[2], *tags}]


def short(names: Sequence[str]) -> list[str]:
    """Return names without their set."""
    return [name.partition("/")[2] for name in names]


def network(name: str) -> Made:
    """Return a network and its inputs, the same every time.

    Raises:
        KeyError: For a name that is not in the table.
    """
    group = TAGS[name][0]
    made: Made = importlib.import_module(f"networks.{_TABLE[group][0]}").made(group, name.partition("/")[2])
    return made

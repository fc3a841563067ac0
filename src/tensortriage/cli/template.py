"""``triage template``: Python files to start from, for edits, networks and configurations that options cannot express.

What they define has the names and signatures that Polygraphy's scripts have (``load_network``, ``load_config``).
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from tensortriage.cli.declared import command
from tensortriage.cli.documents import print_document
from tensortriage.cli.options import model_type_option
from tensortriage.cli.tensorrt_options import TensorrtOptions
from tensortriage.errors import UsageError
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.values.files import write_text
from tensortriage.values.options import argument, flag, option, part
from tensortriage.values.output_files import Place
from tensortriage.values.printable import printable

RESULT = "Result"
EDIT = '''\
#!/usr/bin/env python3
"""Edit a model: reads {source}, writes {result}."""

import onnx_ir as ir

SOURCE = {source!r}
RESULT = {result!r}


def edit(graph: ir.Graph) -> None:
    """Change the graph in place."""
    # TODO: what is to be changed, for example:
    # for node in graph:
    #     if node.op_type == "Softmax":
    #         node.attributes["axis"] = ir.AttrInt64("axis", -1)


if __name__ == "__main__":
    model = ir.load(SOURCE)
    edit(model.graph)
    ir.save(model, RESULT)
'''
NETWORK = '''\
#!/usr/bin/env python3
"""{title}"""

import tensorrt as trt

LOGGER = trt.Logger(trt.Logger.WARNING)


def load_network():
    """Return {returned}."""
    builder = trt.Builder(LOGGER)
    flags = trt.NetworkDefinitionCreationFlag
    wanted = [name for name in {flags} if hasattr(flags, name)]  # what a release has no flag for is its default
    network = builder.create_network(sum(1 << int(getattr(flags, name)) for name in wanted))
{body}
'''
PARSED = """\
    parser = trt.OnnxParser(network, LOGGER)
    if not parser.parse_from_file({source!r}):
        raise RuntimeError("\\n".join(str(parser.get_error(index)) for index in range(parser.num_errors)))
    # TODO: what is to be changed in the network, for example:
    # for index in range(network.num_layers):
    #     if network.get_layer(index).type == trt.LayerType.SOFTMAX:
    #         network.get_layer(index).precision = trt.float32
    return builder, network, parser"""
EMPTY = """\
    # TODO: the network, for example:
    # data = network.add_input("data", trt.float32, (1, 3))
    # network.mark_output(network.add_identity(data).get_output(0))
    return builder, network"""
CONFIG = '''\
#!/usr/bin/env python3
"""Make a TensorRT builder configuration."""

import tensorrt as trt


def load_config(builder, network):
    """Return the configuration."""
    config = builder.create_builder_config()
{body}
    # TODO: what else is to be set
    return config
'''
_FLAGS = {
    "sparse": "SPARSE_WEIGHTS", "version_compatible": "VERSION_COMPATIBLE", "refit": "REFIT",
    "no_new_timings": "ERROR_ON_TIMING_CACHE_MISS", "no_compilation_cache": "DISABLE_COMPILATION_CACHE",
}  # fmt: skip
_ENUMS = {
    "hardware_compatibility_level": "HardwareCompatibilityLevel", "profiling_verbosity": "ProfilingVerbosity",
    "runtime_platform": "RuntimePlatform", "tiling_optimization_level": "TilingOptimizationLevel",
    "engine_capability": "EngineCapability", "default_device_type": "DeviceType",
}  # fmt: skip


def output_field() -> Any:
    """Declare where the file is written."""
    return option("--output -o", "FILE.py", "File to write; an existing one is replaced.", writes=Place.FILE,
                  group=RESULT)  # fmt: skip


@command("onnx-gs", epilog="""\b
Examples:
  triage template onnx-gs model.onnx -o edit.py
""")  # fmt: skip
def onnx_gs(model: Path = argument("MODEL"), output: Path = output_field(), *, as_json: bool) -> None:
    """Write a script that reads MODEL, edits its graph and writes it to ..._updated.onnx beside it."""
    source = _existing(model)
    result = source.with_name(f"{source.stem}_updated{source.suffix}")
    _write(output, EDIT.format(source=str(source), result=str(result)), as_json=as_json)


@command("trt-network", accepted=[model_type_option(RESULT)], epilog="""\b
Examples:
  triage template trt-network model.onnx -o network.py
""")  # fmt: skip
def trt_network(
    model: Path | None = argument("MODEL", default=None),
    strongly_typed: bool = flag(
        "--strongly-typed", "Every layer computes in the type that the model declares.", group=RESULT),
    output: Path = output_field(),
    *,
    as_json: bool,
) -> None:  # fmt: skip
    """Write a script whose load_network() makes the network of MODEL, or an empty one."""
    flags = ["EXPLICIT_BATCH"] + ["STRONGLY_TYPED"] * strongly_typed
    title, returned, body = "Make a TensorRT network.", "builder and network", EMPTY
    if model is not None:
        source = str(_existing(model))
        title, returned = "Make the TensorRT network of an ONNX model.", "builder, network and parser"
        body = PARSED.format(source=source)
    _write(output, NETWORK.format(title=title, returned=returned, flags=flags, body=body), as_json=as_json)


@command("trt-config", accepted=[model_type_option(RESULT)], epilog="""\b
Examples:
  triage template trt-config --fp16 --builder-optimization-level 2 -o config.py
""")  # fmt: skip
def trt_config(
    tensorrt: TensorrtOptions,
    model: Path | None = argument("MODEL", default=None),
    feeding: FeedRequest = part(factory=FeedRequest, limits=None),
    output: Path = output_field(),
    *,
    as_json: bool,
) -> None:  # fmt: skip
    """Write a script whose load_config(builder, network) makes a configuration with the flags that are given."""
    body = "\n".join(f"    {line}" for line in config_lines(tensorrt.words()))
    _write(output, CONFIG.format(body=body), as_json=as_json)


def config_lines(words: Mapping[str, str]) -> Iterator[str]:
    """Yield the statements that set what options of the engine ``tensorrt`` say.

    Raises:
        UsageError: For an option that is no part of a configuration (``template-option``).
    """
    formats = [words["precision"], *filter(None, words.get("fallback", "").split("+"))]
    if "tf32" not in formats:
        yield "config.clear_flag(trt.BuilderFlag.TF32)"
    for name in formats:
        if name not in ("fp32", "mixed"):
            yield _flag(name.upper())
    shapes = {name.removeprefix("profile."): text for name, text in words.items() if name.startswith("profile.")}
    if shapes:
        yield "profile = builder.create_optimization_profile()"
        for name, text in shapes.items():
            sizes = (f"({', '.join(shape.split('x'))},)" for shape in text.split(":"))
            yield f"profile.set_shape({name!r}, {', '.join(sizes)})"
        yield "config.add_optimization_profile(profile)"
    for name, text in words.items():
        if name in ("precision", "fallback") or name.startswith("profile."):
            continue
        if name in _FLAGS:
            yield _flag(_FLAGS[name])
        elif name == "builder_flags":
            yield from map(_flag, text.split("+"))
        elif name == "opt_level":
            yield f"config.builder_optimization_level = {text}"
        elif name == "max_aux_streams":
            yield f"config.max_aux_streams = {text}"
        elif name == "workspace":
            yield f"config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, {text} << 20)"
        elif name == "builder_settings":
            for setting, _, member in (each.partition(":") for each in text.split("+")):
                yield f"config.{setting} = trt.{_ENUMS[setting]}.{member}"
        else:
            raise UsageError(
                f"'{name}' does not belong into a builder configuration", slug="template-option",
                cure="leave it out; triage run MODEL --trt accepts it",
            )  # fmt: skip


def _flag(name: str) -> str:
    return f"config.set_flag(trt.BuilderFlag.{name})"


def _existing(model: Path) -> Path:
    if not model.is_file():
        raise UsageError(f"{model} does not exist", slug="model-missing", cure="check the path")
    return model.absolute()


def _write(path: Path, text: str, *, as_json: bool) -> None:
    if str(path) == "-":
        click.echo(text, nl=False)
        return
    write_text(path, text)
    click.echo(f"wrote {printable(str(path))}", err=as_json)
    if as_json:
        print_document(json.dumps({"format": "tensortriage.template/1", "written": str(path)}))

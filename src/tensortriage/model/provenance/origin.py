"""The module, the class and the line of source from which an exporter made a node.

PyTorch's dynamo exporter writes all three into the node's metadata. The older exporter writes the module path into the
node's name, and the stack into its doc string when it is told to be verbose. Keras and tf2onnx write a path of name
scopes into the name. All become one form, PyTorch's own: ``encoder.layer.3.output``.
"""

import ast
import dataclasses
import re
from collections.abc import Mapping, Sequence

from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.provenance.path_names import common_module, module_of_name, nested_steps

NAME_SCOPES = "pkg.torch.onnx.name_scopes"
CLASS_HIERARCHY = "pkg.torch.onnx.class_hierarchy"
STACK_TRACE = "pkg.torch.onnx.stack_trace"
FX_NODE = "pkg.torch.onnx.fx_node"
BODY = "tensortriage.body"
"""Metadata key for the branch that this program took a node from."""

_LONGEST_METADATA = 100_000
_FRAME = re.compile(r'File "([^"\n]+)", line (\d+)')  # as Python prints a stack, innermost last
_VERBOSE_FRAME = re.compile(r"^([^\n]+?)\((\d+)\): ", re.MULTILINE)  # as torch.jit does, innermost first
_TORCH_ITSELF = re.compile(r"[/\\]torch[/\\](nn|_|jit|fx|onnx|export|utils|autograd|functional\.py)")
_FX_NAME = re.compile(r"%(\w+) :")


@frozen_dataclass
class NodeOrigin:
    """Source of a node; empty texts and 0 where the file does not give it.

    Attributes:
        module: Dotted path of the innermost module, e.g. ``model.layers.1.self_attn.o_proj``; empty for the network
            itself as well.
        module_class: Class of the module without the package, e.g. ``Linear``.
        file: Source file of the innermost call that is not PyTorch's own, as the exporter wrote it.
        line: Line in it, from 1.
        operator: What the network calls there, e.g. ``aten.linear.default``.
        fx_node: Name of the node of ``torch.export``'s graph from which it was made, e.g. ``linear_5``.
        body: Branch of an If that the file has it in, e.g. ``optimum::if/then_branch``; empty in the main graph.
    """

    module: str = ""
    module_class: str = ""
    file: str = ""
    line: int = 0
    operator: str = ""
    fx_node: str = ""
    body: str = ""

    @property
    def is_known(self) -> bool:
        """Whether the file names the node's module; the network itself counts."""
        return bool(self.module or self.module_class)

    @property
    def source(self) -> str:
        """File name without folders, and line, e.g. ``modeling_llama.py:281``; empty when unknown."""
        name = self.file.replace("\\", "/").rpartition("/")[2]
        return f"{name}:{self.line}" if name and self.line else ""

    @property
    def label(self) -> str:
        """All of it in one line: ``model.layers.1.self_attn.o_proj (Linear, modeling_llama.py:281)``."""
        name = self.module or self.module_class
        details = ", ".join(filter(None, (self.module_class if self.module else "", self.source)))
        return f"{name} ({details})" if name and details else name or details

    def beside(self, node: str) -> str:
        """Return the label to show with the name of a node; empty where the name contains it."""
        label = self.label if self.tells_more(node) else ""
        return " ".join(filter(None, (label, self.body and f"in {self.body}")))

    def among(self, name: str, *, users: Sequence["NodeOrigin"], makers: Sequence["NodeOrigin"]) -> "NodeOrigin":
        """Return this origin, which names no module, with the module that the nodes around imply.

        A node that the exporter's optimizer put in without saying so belongs to the innermost module in which all lie
        that use it, as far as those say; one without a path among nodes with paths to the module of all around it.

        Args:
            name: The node's name.
            users: The origins of nodes that use its results.
            makers: Those of nodes that make what it uses, Constant nodes left out.
        """
        if exported := [user.module for user in users if user.operator]:
            return dataclasses.replace(self, module=common_module(exported))
        around = {origin.module for origin in (*users, *makers)}
        inside = users and makers and len(around) == 1 and "/" not in name
        return dataclasses.replace(self, module=around.pop()) if inside else self

    def tells_more(self, node: str) -> bool:
        """Return whether module, class or line add to the name of a node."""
        return bool(self.module_class or self.source or self.module != module_of_name(node))


UNKNOWN = NodeOrigin()
"""The origin of a node of which the file says nothing."""


def read_origin(name: str, metadata: Mapping[str, str], doc_string: str = "") -> NodeOrigin:
    """Return the origin of a node.

    Args:
        name: Node name, e.g. ``/encoder/layer.3/MatMul``.
        metadata: The node's metadata_props. ``name_scopes`` and ``class_hierarchy`` hold Python list literals,
            outermost first: full dotted paths of modules, or their classes, then the node itself; ``stack_trace`` is a
            stack as Python prints it (torch/onnx/_internal/exporter/_core.py).
        doc_string: The node's doc string, in which the older exporter writes a stack.
    """
    scopes = _texts(metadata.get(NAME_SCOPES, ""))
    classes = _texts(metadata.get(CLASS_HIERARCHY, ""))
    file, line = _place(metadata.get(STACK_TRACE, ""), doc_string)
    fx_node = _FX_NAME.match(metadata.get(FX_NODE, "")[:_LONGEST_METADATA])
    return NodeOrigin(
        module=".".join(nested_steps(scopes[:-1])) if scopes else module_of_name(name),
        module_class=classes[-2].rpartition(".")[2] if len(classes) > 1 else "",
        file=file,
        line=line,
        operator=classes[-1] if classes else "",
        fx_node=fx_node.group(1) if fx_node else "",
        body=metadata.get(BODY, ""),
    )


def _texts(literal: str) -> list[str]:
    if not literal.startswith("[") or len(literal) > _LONGEST_METADATA:
        return []
    try:
        texts = ast.literal_eval(literal)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return []
    return [text for text in texts if isinstance(text, str)] if isinstance(texts, list) else []


def _place(stack_trace: str, doc_string: str) -> tuple[str, int]:
    """Return file and line of the innermost frame that is not PyTorch's own, or of the innermost at all."""
    frames = [frame.groups() for frame in _FRAME.finditer(stack_trace[-_LONGEST_METADATA:])][::-1]
    frames = frames or [frame.groups() for frame in _VERBOSE_FRAME.finditer(doc_string[:_LONGEST_METADATA])]
    own = [frame for frame in frames if not _TORCH_ITSELF.search(frame[0])]
    if not frames:
        return "", 0
    file, line = (own or frames)[0]
    return file, int(line) if len(line) < 10 else 0

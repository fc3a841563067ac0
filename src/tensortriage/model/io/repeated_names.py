"""Values that several nodes make under one name, made distinct, as when a user's name equals an exporter's.

Exporters call values after the operations they come from; an output that the user names ``linear`` may meet another
``linear`` inside. What nodes use is then the latest value of that name before them in the file, and the output is the
last one: every earlier value gets a name of its own.
"""

from collections import Counter
from collections.abc import Mapping, MutableSequence

import onnx

from tensortriage.model.ir.messages import bodies


def mend_repeated_names(proto: onnx.ModelProto) -> dict[str, str]:
    """Rename, in place, all but the last of the values of the main graph that nodes make under one name.

    Returns:
        New name to the name it had.
    """
    graph = proto.graph
    made = Counter(name for node in graph.node for name in node.output if name)
    left = {name: count for name, count in made.items() if count > 1}
    if not left:
        return {}
    taken = {*made, *(value.name for value in graph.input), *(tensor.name for tensor in graph.initializer)}
    renamed: dict[str, str] = {}
    current: dict[str, str] = {}
    for node in graph.node:
        _use(node, current)
        for place, name in enumerate(node.output):
            if name not in left:
                continue
            left[name] -= 1
            current[name] = name
            if left[name]:
                current[name] = node.output[place] = _fresh(name, taken)
                renamed[current[name]] = name
    return renamed


def _use(node: onnx.NodeProto, names: Mapping[str, str]) -> None:
    """Make a node, with the outer values of its bodies, use the values of these names."""
    _replace(node.input, names)
    for _, body in bodies(node):
        own = {value.name for value in body.input} | {tensor.name for tensor in body.initializer}
        own |= {name for inner in body.node for name in inner.output}
        outer = {name: new for name, new in names.items() if name not in own}
        for inner in body.node:
            _use(inner, outer)


def _replace(uses: MutableSequence[str], names: Mapping[str, str]) -> None:
    for place, name in enumerate(uses):
        if name in names:
            uses[place] = names[name]


def _fresh(name: str, taken: set[str]) -> str:
    count = 1
    while f"{name}_inner_{count}" in taken:
        count += 1
    taken.add(f"{name}_inner_{count}")
    return f"{name}_inner_{count}"

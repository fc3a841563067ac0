"""Every node gets a unique name, the same one on every load of the same file."""

import onnx_ir as ir


def name_nodes(model: ir.Model) -> None:
    """Rename, in place, the nodes of the main graph that are unnamed or repeat an earlier node's name.

    The new name is ``{op_type}_{index}`` with the node's position in the graph; when that is taken, ``_2``, ``_3`` ...
    is appended. Named nodes keep their names: the first of several with one name is the one that keeps it.
    """
    taken = {node.name for node in model.graph if node.name}
    seen: set[str] = set()
    for index, node in enumerate(model.graph):
        if not node.name or node.name in seen:
            node.name = _free(f"{node.op_type}_{index}", taken)
            taken.add(node.name)
        seen.add(node.name)


def _free(wanted: str, taken: set[str]) -> str:
    name, count = wanted, 1
    while name in taken:
        count += 1
        name = f"{wanted}_{count}"
    return name

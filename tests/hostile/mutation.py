"""Mutations that keep enough of a file's structure to get past its first check.

Every function takes a `random.Random`, so that a seed is a file. `mutated_message` works on any protobuf message, field
by field; `mutated_tree` on any JSON document; the others know the headers of npy, npz and safetensors.
"""

import copy
import io
import json
import struct
import zipfile

import onnx
from google.protobuf.descriptor import FieldDescriptor

INTEGERS = (0, 1, -1, 2, 7, 255, 65536, 2**31 - 1, 2**31, -(2**31), 2**32, 10**12, 2**62, 2**63 - 1, -(2**63))
FLOATS = (0.0, -0.0, 1e-45, 1e38, -1e308, float("inf"), float("-inf"), float("nan"), 1.5)
TEXTS = (
    "", " ", "x", "a" * 5000, "../../etc/passwd", "/dev/zero", "\x00", "\x1b[31m", "\ud7ff\U0001f600", "<script>",
    "%s{}", "weights.bin", "1.0",
)  # fmt: skip
VARINTS = (b"\xff" * 9 + b"\x01", b"\x80\x80\x80\x80\x08", b"\x00", b"\xff\xff\xff\xff\x0f", b"\x01")
JSON_VALUES = (
    None, True, 0, -1, 2**31, 2**64, 10**400, 1e308, "", "NaN", "Infinity", "x", [], {}, [[]], [None], {"": {}},
)  # fmt: skip


def mutated_bytes(data, rng):
    """Return bytes with some stretches flipped, lost, doubled, zeroed or replaced by extreme numbers."""
    text = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8])):
        start = rng.randrange(len(text) or 1)
        length = min(rng.choice([1, 4, 64, 1024]), len(text) - start)
        piece = bytes(text[start : start + length])
        flipped = bytes(byte ^ (1 << rng.randrange(8)) for byte in piece)
        text[start : start + length] = rng.choice([flipped, b"", piece * 2, bytes(length), rng.choice(VARINTS)])
    return bytes(text) if rng.random() < 0.9 else bytes(text[: rng.randrange(len(text) + 1)])


def _messages(message):
    """Return a message and all in it."""
    found, pending = [], [message]
    while pending:
        one = pending.pop()
        found.append(one)
        for field, value in one.ListFields():
            if field.message_type is not None:
                pending += list(value) if field.is_repeated else [value]
    return found


def _names(model):
    graph = model.graph
    names = [name for node in graph.node for name in [*node.input, *node.output, node.name]]
    return names + [value.name for value in [*graph.input, *graph.output, *graph.initializer]] or ["x"]


def _scalar(field, old, names, rng):
    kind = field.cpp_type
    if kind == FieldDescriptor.CPPTYPE_ENUM:
        return rng.choice([value.number for value in field.enum_type.values])
    if kind in (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE):
        return rng.choice(FLOATS)
    if kind == FieldDescriptor.CPPTYPE_STRING:
        if field.type == FieldDescriptor.TYPE_BYTES:
            return rng.choice([b"", old[:-1], old * 2, b"\xff" * 9, mutated_bytes(old, rng) if old else b"x"])
        return rng.choice([rng.choice(names), rng.choice(TEXTS)])
    value = rng.choice([rng.choice(INTEGERS), (old or 0) + rng.choice([-1, 1]), rng.randrange(-3, 30)])
    low, high = (-(2**31), 2**31 - 1) if kind == FieldDescriptor.CPPTYPE_INT32 else (-(2**63), 2**63 - 1)
    if kind in (FieldDescriptor.CPPTYPE_UINT32, FieldDescriptor.CPPTYPE_UINT64):
        low, high = 0, 2**64 - 1 if kind == FieldDescriptor.CPPTYPE_UINT64 else 2**32 - 1
    return min(max(value, low), high)


def _change_list(items, field, names, rng):
    change = rng.randrange(5)
    place = rng.randrange(len(items)) if items else 0
    if change == 0 and items:
        del items[place]
    elif change == 1 and items and field.message_type is not None:
        items.add().CopyFrom(items[place])
    elif change == 2 and len(items) > 1 and field.message_type is None:
        values = list(items)
        rng.shuffle(values)
        items[:] = values
    elif field.message_type is not None:
        items.add()
    elif items and change == 3:
        items[place] = _scalar(field, items[place], names, rng)
    else:
        empty = b"" if field.type == FieldDescriptor.TYPE_BYTES else "" if items and isinstance(items[0], str) else 0
        items.extend([_scalar(field, empty, names, rng) for _ in range(rng.choice([1, 1, 1, 40]))])


def _change_field(message, names, rng):
    present = [field for field, _ in message.ListFields()]
    fields = present if present and rng.random() < 0.8 else list(message.DESCRIPTOR.fields)
    field = rng.choice(fields)
    if field.is_repeated:
        _change_list(getattr(message, field.name), field, names, rng)
    elif field.message_type is not None or rng.random() < 0.15:
        message.ClearField(field.name)
    else:
        setattr(message, field.name, _scalar(field, getattr(message, field.name), names, rng))


def _graft(message, everything, rng):
    """Let a message be another one of its kind: a node that is its neighbour, a graph inside itself."""
    others = [other for other in everything if type(other) is type(message) and other is not message]
    if others:
        message.CopyFrom(type(message).FromString(rng.choice(others).SerializePartialToString()))


def mutated_message(data, rng, kind=onnx.ModelProto):
    """Return the bytes of a message with some fields changed, lost, doubled or exchanged."""
    model = kind.FromString(data)
    names = _names(model) if isinstance(model, onnx.ModelProto) else ["x", "y"]
    for _ in range(rng.choice([1, 1, 2, 4])):
        everything = _messages(model)
        message = rng.choice(everything)
        if rng.random() < 0.2:
            _graft(message, everything, rng)
        else:
            _change_field(message, names, rng)
    return model.SerializePartialToString()


def mutated_tree(tree, rng):
    """Return a JSON document with some members replaced, lost, doubled, renamed or nested deeper."""
    tree = json.loads(json.dumps(tree))
    for _ in range(rng.choice([1, 1, 2, 4])):
        places = _places(tree)
        if not places:
            return _value(rng)
        holder, key = rng.choice(places)
        change = rng.randrange(6)
        if change == 0:
            del holder[key]
        elif change == 1:
            other, name = rng.choice(places)
            with_it = json.dumps(other[name]) if name in other or isinstance(other, list) else "null"
            holder[key] = json.loads(with_it) if len(with_it) < 10**6 else None
        elif change == 2 and isinstance(holder, dict):
            holder[rng.choice(TEXTS)] = holder.pop(key)
        elif change == 3:
            depth = rng.choice([1, 3, 200])
            holder[key] = json.loads("[" * depth + json.dumps(holder[key]) + "]" * depth)
        elif isinstance(holder[key], str):
            holder[key] = rng.choice([*TEXTS, holder[key][:-1], holder[key] * 2])
        elif isinstance(holder[key], int | float) and not isinstance(holder[key], bool):
            holder[key] = rng.choice([*INTEGERS, *(f for f in FLOATS if f == f and abs(f) != float("inf"))])
        else:
            holder[key] = _value(rng)
    return tree


def _value(rng):
    """Return one of JSON_VALUES, of which nobody else holds a part."""
    return copy.deepcopy(rng.choice(JSON_VALUES))


def _places(tree):
    found, pending = [], [tree]
    while pending:
        one = pending.pop()
        keys = one.keys() if isinstance(one, dict) else range(len(one)) if isinstance(one, list) else ()
        found += [(one, key) for key in keys]
        pending += [one[key] for key in keys]
    return found


def mutated_json(data, rng):
    """Return the text of a JSON document, its tree or its letters changed."""
    if rng.random() < 0.2:
        return mutated_bytes(data, rng)
    text = json.dumps(mutated_tree(json.loads(data), rng))
    return (text if rng.random() < 0.95 else text + rng.choice(["", "}", " 1", "\x00"])).encode()


def mutated_npy(data, rng):
    """Return an npy file whose header says something else, or whose bytes are damaged."""
    if rng.random() < 0.3 or not data.startswith(b"\x93NUMPY"):
        return mutated_bytes(data, rng)
    length = struct.unpack_from("<H", data, 8)[0]
    header = data[10 : 10 + length].decode("latin1")
    shape = rng.choice(["()", "(3,)", "(-1,)", f"({rng.choice(INTEGERS)},)", "(1,)*40", "(" + "1," * 70 + ")", "'x'"])
    kind = rng.choice(["<f4", ">f8", "|O", "<U9999999", "|S0", "|V3", "<c16", "<M8[s]", "|b1", "<f2", "zz", "<i4,<f4"])
    changed = rng.choice([
        header.replace("(", "((", 1), header[: header.find("'shape'")] + f"'shape': {shape}, }}\n",
        f"{{'descr': '{kind}', 'fortran_order': {rng.choice(['True', 'False', '7'])}, 'shape': {shape}, }}\n",
        f"{{'descr': {rng.choice(INTEGERS)}, 'fortran_order': False, 'shape': (1,)}}", "{" * 300, "",
    ])  # fmt: skip
    text = changed.encode("latin1")
    return data[:8] + struct.pack("<H", min(len(text), 65535)) + text[:65535] + data[10 + length :]


def mutated_npz(data, rng):
    """Return an archive with members changed, lost, doubled, renamed, or of an odd compression; or damaged bytes."""
    if rng.random() < 0.3:
        return mutated_bytes(data, rng)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [(info.filename, archive.read(info)) for info in archive.infolist()]
    place = rng.randrange(len(members))
    name, content = members[place]
    members[place] = (name, mutated_npy(content, rng))
    change = rng.randrange(6)
    if change == 0:
        members[place] = (rng.choice(["../x.npy", "x", " ", "a/b.npy", "é.npy", "x\n.npy", name[:-1]]), content)
    elif change == 1:
        members += [(f"more{index}.npy", content) for index in range(rng.choice([1, 300]))]
    elif change == 2:
        members[place] = (name, b"\x93NUMPY\x01\x00" + bytes(rng.choice([10**3, 10**7])))
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])) as file:
        for name, content in dict(members).items():
            file.writestr(name, content)
    return target.getvalue()


def mutated_safetensors(data, rng):
    """Return a safetensors file whose header says something else, or whose bytes are damaged."""
    if rng.random() < 0.3:
        return mutated_bytes(data, rng)
    length = struct.unpack_from("<Q", data)[0]
    header = mutated_tree(json.loads(data[8 : 8 + length]), rng)
    text = json.dumps(header).encode()
    said = len(text) if rng.random() < 0.9 else rng.choice([0, 1, 2**40, 2**63, len(text) - 1])
    return struct.pack("<Q", said) + text + data[8 + length :]

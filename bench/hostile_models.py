"""Mutated models and data files: nothing but a model, data or an error of ours with slug and cure may come out.

    python bench/hostile_models.py [--count 2000] [--seed N]

Prints how many ended how, and the seed of everything that ended otherwise. The mutations are those of bytes (flipped,
cut out, doubled, replaced by extreme varints) and of fields of the ONNX message (copied over one another).
"""

import argparse
import collections
import random
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
from google.protobuf.message import Message

from tensortriage.errors import TriageError
from tensortriage.inputs.feeds import load_feeds
from tensortriage.inputs.generated.random import random_feeds
from tensortriage.model.model import Model

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
EXTREMES = [b"\xff" * 9 + b"\x01", b"\x80\x80\x80\x80\x08", b"\x00", b"\xff\xff\xff\xff\x0f", b"\x01"]
SLOW_SECONDS = 60.0


def mutated_bytes(data: bytes, rng: random.Random) -> bytes:
    text = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8])):
        start = rng.randrange(len(text) or 1)
        length = min(rng.choice([1, 4, 64, 1024]), len(text) - start)
        piece = bytes(text[start : start + length])
        flipped = bytes(byte ^ (1 << rng.randrange(8)) for byte in piece)
        text[start : start + length] = rng.choice([flipped, b"", piece * 2, bytes(length), rng.choice(EXTREMES)])
    return bytes(text)


def parts(message: Message) -> list[Message]:
    """Return a message and all in it."""
    found, pending = [], [message]
    while pending:
        one = pending.pop()
        found.append(one)
        for field, value in one.ListFields():
            if field.message_type is not None:
                pending += value if isinstance(value, collections.abc.Sequence) else [value]
    return found


def mutated_fields(data: bytes, rng: random.Random) -> bytes:
    model = onnx.ModelProto.FromString(data)
    for _ in range(rng.choice([1, 2, 4])):
        everything = parts(model)
        one = rng.choice(everything)
        if rng.random() < 0.5:
            other = rng.choice([part for part in everything if type(part) is type(one)])
            if other is not one:
                one.CopyFrom(type(one).FromString(other.SerializeToString()))
        else:
            one.ParseFromString(mutated_bytes(one.SerializePartialToString(), rng))
    return model.SerializePartialToString()


def ended(action: object, seed: int) -> str:
    """Return how an action ended, in a word."""
    started = time.monotonic()
    try:
        action()
    except TriageError as error:
        how = error.slug if error.slug and error.message else f"WITHOUT SLUG (seed {seed})"
    except Exception as error:
        how = f"{type(error).__name__} (seed {seed}): {error}"[:160].upper()
    else:
        how = "read"
    return how if time.monotonic() - started < SLOW_SECONDS else f"SLOW (seed {seed})"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=random.randrange(10**9))
    given = parser.parse_args()
    print("seed", given.seed)
    model = (EXAMPLES / "digits_cnn.onnx").read_bytes()
    data = (EXAMPLES / "digits.npz").read_bytes()
    specs = Model.load(EXAMPLES / "digits_cnn.onnx").inputs
    tally: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory() as name:
        np.seterr(all="ignore")
        for seed in range(given.seed, given.seed + given.count):
            rng = random.Random(seed)
            kind = rng.choice(["bytes", "fields", "data"])
            path = Path(name) / ("x.npz" if kind == "data" else "x.onnx")
            if kind == "data":
                path.write_bytes(mutated_bytes(data, rng))
                tally[f"{kind}: {ended(lambda: list(load_feeds([path], specs)), seed)}"] += 1  # noqa: B023
                continue
            try:
                path.write_bytes((mutated_bytes if kind == "bytes" else mutated_fields)(model, rng))
            except Exception as error:  # protobuf takes no such mutation
                tally[f"{kind}: not made ({type(error).__name__})"] += 1
                continue
            tally[f"{kind}: {ended(lambda: next(random_feeds(Model.load(path))), seed)}"] += 1  # noqa: B023
    for how, count in sorted(tally.items()):
        print(f"{count:6d}  {how}")
    sys.exit(any(how.split(": ", 1)[1][:4].isupper() for how in tally))


if __name__ == "__main__":
    main()

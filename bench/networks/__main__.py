"""Writes networks of the table: see `networks`."""

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path[0] = str(Path(__file__).parent.parent)  # in place of the package's own folder

import networks  # noqa: E402 - found once its parent is on the path


def main() -> None:
    parser = argparse.ArgumentParser(description=networks.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("words", nargs="*", help="sets, tags or names, all of which a network has")
    parser.add_argument("--numbered", action="store_true", help="number the files, in the order of the table")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(networks.names(*arguments.words)):
        prefix = f"{number:02}_" if arguments.numbered else ""
        path = arguments.folder / f"{prefix}{name.partition('/')[2]}.onnx"
        if not path.with_suffix(".npz").is_file():
            np.savez(path.with_suffix(".npz"), **networks.network(name).write(path))
        print(path.name, f"{path.stat().st_size / 1e3:.0f} kB", flush=True)


if __name__ == "__main__":
    main()

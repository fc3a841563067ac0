"""What a user starts is an installed package, whose modules pip has compiled; a checkout may have to do without.

Where an interpreter may write no bytecode (PYTHONDONTWRITEBYTECODE), a checkout is compiled again by every process,
half a second of its start. Benchmarks of whole commands therefore compile it first, as pip would.
"""

import compileall
import importlib.util


def compile_packages() -> None:
    """Compile this package and its worker, unless that is done."""
    for name in ("tensortriage", "tensortriage_worker"):
        spec = importlib.util.find_spec(name)
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            compileall.compile_dir(folder, quiet=1)

"""Compiles the metrics pass while a wheel or an editable installation is made; without a compiler there is none.

hatchling builds the package and runs this hook; setuptools, which only the build needs, knows how C is compiled on each
platform. The module uses Python's limited API, so that one build serves every Python from 3.11 on.
"""

import shutil
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import sys_tags

PACKAGE = Path("src/tensortriage/compare/metrics")
NAME = "_compiled_pass"
FLAGS = {
    "unix": ["-O3", "-g0", "-fopenmp-simd", "-fno-strict-aliasing"],  # sums in any order; bits of floats as integers
    "msvc": ["/O2"],
}


class CompiledPassHook(BuildHookInterface[Any]):
    """Adds the compiled module to what is built, if it can be compiled."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile before the wheel is put together.

        Args:
            version: "standard", or "editable", for which the module is left beside its source.
            build_data: What goes into the wheel and how it is named; added to.
        """
        if self.target_name != "wheel":
            return
        folder = Path(self.root, PACKAGE)
        if version == "editable":  # Others may have it loaded: a file of that name is replaced, not written to.
            for outdated in folder.glob(f"{NAME}.*"):
                if outdated.suffix in (".so", ".pyd"):
                    outdated.unlink()
        self._scratch = tempfile.TemporaryDirectory()
        try:
            built = compile_pass(folder, Path(self._scratch.name))
        except Exception as error:  # setuptools', a missing compiler's, and that of setuptools which is missing itself
            self.app.display_warning(f"The metrics pass is not compiled, numpy's is used: {error}")
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"cp311-abi3-{next(iter(sys_tags())).platform}"
        if version == "editable":
            shutil.move(built, folder / built.name)
        else:
            build_data["force_include"][str(built)] = str(PACKAGE.relative_to("src") / built.name)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Throw away what was compiled, which is in the wheel by now."""
        if self.target_name == "wheel":
            self._scratch.cleanup()


def compile_pass(folder: Path, scratch: Path) -> Path:
    """Compile the module.

    Args:
        folder: Where its sources are.
        scratch: Folder to write to.

    Returns:
        The file that was made, below ``scratch``.
    """
    from setuptools import Distribution, Extension
    from setuptools.command.build_ext import build_ext

    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise RuntimeError("free-threaded Python has no limited API")

    class Compile(build_ext):
        def build_extensions(self) -> None:
            self.extensions[0].extra_compile_args = FLAGS.get(self.compiler.compiler_type, [])
            super().build_extensions()

    headers = [str(folder / name) for name in ("_bits.h", "_errors.h")]
    extension = Extension(NAME, [str(folder / f"{NAME}.c")], depends=headers, py_limited_api=True)
    command = Compile(Distribution({"name": NAME, "ext_modules": [extension]}))
    command.build_lib = command.build_temp = str(scratch)
    command.ensure_finalized()
    command.run()
    return Path(command.get_ext_fullpath(NAME))

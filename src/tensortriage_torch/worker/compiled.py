"""A network under ``torch.compile``, with the settings that a short-lived process wants, and its failures in words.

Inductor caches its code in the folder for temporary files, which is this worker's own. It would compile a header of
PyTorch's first, to save time on later kernels, which takes longer than the kernels of one network do, and start
processes of its own, which is not worth their start either.
"""

from __future__ import annotations

import importlib
from typing import Any, Callable

from tensortriage_worker.adapter import AdapterError, AdapterFailure

_QUICK = {"cpp_cache_precompile_headers": False, "compile_threads": 1}
_UNFUSED = {"max_fusion_size": 1, "epilogue_fusion": False, "pattern_matcher": False}
_NO_COMPILER = ("No working C++ compiler", "InvalidCxxCompiler", "Cannot find a working triton")


def compiled(torch: Any, module: Any, word: str) -> Callable[..., Any]:
    """Return a callable that runs a module compiled by the word: eager, aot_eager, inductor, inductor-unfused.

    Compiling takes place in the first call for each shape, which raises `AdapterError` when it fails.
    """
    if word == "eager":
        return module  # type: ignore[no-any-return] # as it was given
    backend, _, unfused = word.partition("-")
    known = importlib.import_module("torch._inductor.config").get_config_copy() if backend == "inductor" else {}
    options = {name: value for name, value in {**_QUICK, **(_UNFUSED if unfused else {})}.items() if name in known}
    failures = importlib.import_module("torch._dynamo.exc")
    torch._dynamo.reset()  # after a few networks of one class, it would run further ones uncompiled
    made = torch.compile(module, backend=backend, options=options or None)

    def run(*arguments: Any, **keywords: Any) -> Any:
        try:
            return made(*arguments, **keywords)
        except failures.TorchDynamoException as error:
            raise _refused(error) from error

    return run


def _refused(error: Exception) -> AdapterError:
    """Return the error for a network that ``torch.compile`` cannot compile."""
    text = " ".join(str(error).split())
    if any(words in text or words in type(error).__name__ for words in _NO_COMPILER):
        return AdapterError(
            AdapterFailure.MISSING,
            "torch.compile finds no working compiler: {}".format(text[:300]),
            "torch-compiler",
            "install g++ or clang++ (CXX names another), or compare with compile=aot_eager, which compiles nothing",
        )
    return AdapterError(
        AdapterFailure.BUILD,
        "torch.compile refuses the network: {}: {}".format(type(error).__name__, text[:600]),
        "torch-compile",
        "try compile=aot_eager and compile=inductor-unfused, which do less, to narrow the cause down",
    )

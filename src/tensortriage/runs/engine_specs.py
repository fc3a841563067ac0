"""Engines as the user names them: the default reference, and the check that a named engine can be used here."""

import contextlib
from concurrent.futures import Future, ThreadPoolExecutor

from tensortriage.engines.base import Limits
from tensortriage.engines.capabilities import ChecksOptions, RunsGivenEngines
from tensortriage.engines.registry import ResolvedEngine, create, resolve
from tensortriage.engines.spec import PLAIN, EngineSpec
from tensortriage.errors import EngineMissing, TriageError, UsageError
from tensortriage.runs.environment_folder import installed_python

DEFAULT_REFERENCE = str(PLAIN)
"""Every op as written, none fused."""


def usable(text: str, *, limits: Limits | None = None, anew: bool = False) -> EngineSpec:
    """Parse an engine spec and make sure that the engine can be used here, as far as that shows without a model.

    An engine that this Python lacks runs in the environment that ``triage engines install`` made for it, if there is
    one; the spec names it from then on.

    Args:
        text: NAME[:key=value,...].
        limits: Bounds on asking an engine that answers in a process of its own.
        anew: Whether it is to build parts, changes, or the model once more, which an engine from a file cannot.

    Raises:
        UsageError: When the spec is malformed, the engine or an option unknown, or the engine one from a file that is
            to be built again (slug ``engine-given``).
        EngineMissing: When it is not usable here, or cannot compute in the requested precision.
        EngineError: When it crashes or hangs while it reports on itself.
    """
    if not anew and (known := _ASKED.pop((text, limits or Limits()), None)) is not None:
        return known.result()
    return _usable(text, limits=limits, anew=anew)


_ASKED: dict[tuple[str, Limits], Future[EngineSpec]] = {}
"""Pending work of `ask_ahead`."""


def ask_ahead(text: str) -> None:
    """Start the work of `usable` within the default limits; the process of an engine starts while others work.

    Args:
        text: As for `usable`, which also asks the engine and reports the result.
    """
    with contextlib.suppress(TriageError):
        resolve(EngineSpec.parse(text))  # its modules: those that two threads import at once may see half of one
    pool = ThreadPoolExecutor(1, thread_name_prefix="ahead")
    _ASKED[text, Limits()] = pool.submit(_usable, text)
    pool.shutdown(wait=False)


def _usable(text: str, *, limits: Limits | None = None, anew: bool = False) -> EngineSpec:
    spec = in_its_environment(EngineSpec.parse(text))
    engine = create(spec, limits=limits)
    if anew and isinstance(engine, RunsGivenEngines) and (options := engine.without_file(spec.options)) is not None:
        raise UsageError(
            f"{spec} is an engine from a file, which runs as a whole and cannot be rebuilt",
            slug="engine-given",
            cure=f"name the options of its build in place of the file, e.g. {spec.with_options(options)}",
        )
    available = engine.availability()
    if not available.usable and "worker" not in spec.options:  # another Python is asked when it is started
        raise EngineMissing(
            f"engine '{spec.name}' cannot be used here: {available.reason}", slug="engine-missing", cure=available.cure
        )
    if isinstance(engine, ChecksOptions):
        engine.check(spec.options)
    _ = resolve(spec).precision  # it raises where the device has no such format
    return spec


def resolved_engine(spec: EngineSpec) -> ResolvedEngine:
    """Return the engine of a spec, in the environment installed for it where it needs one.

    Raises:
        UsageError: When no engine is called so.
        EngineMissing: When its package is broken.
    """
    return resolve(in_its_environment(spec))


def in_its_environment(spec: EngineSpec) -> EngineSpec:
    """Return the spec of an engine that this Python lacks with the worker that was installed for it, if there is one.

    A provider that an engine loads (``ep=qnn``) has an environment of its own name.

    Raises:
        UsageError: When no engine is called so.
        EngineMissing: When its package is broken.
    """
    engine = resolve(spec).engine
    provider = spec.options.get("ep", "") if "ep" in engine.options else ""
    if "worker" not in engine.options or "worker" in spec.options or (engine.availability().usable and not provider):
        return spec
    python = installed_python(provider or spec.name)
    return spec.with_options({"worker": python, **spec.options}) if python else spec

"""Converted files cached in a folder by content: each model is converted once per case.

Converters take seconds, and one diagnosis needs the same file several times: deployed, watched, at other settings of
the runtime. A conversion is identified by the model, the options that the converter reads, and the packages that are
installed where it runs.
"""

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tensortriage.engines.sdk import IsolatedEngine, IsolatedSession, ModelTerms, packages_digest, placed

if TYPE_CHECKING:
    from tensortriage.engines.sdk import Model

CONVERTED = "converted"
"""Option of adapters that takes a cached conversion, and the question that returns one."""
_logger = logging.getLogger(__name__)


class Conversions:
    """Builds in a worker whose adapter converts first, or takes an earlier conversion.

    An adapter that takes part understands the option ``converted``, a file that it wrote, and its sessions answer the
    question ``converted`` with that file's bytes, and report ``conversion_seconds``. For a given file it is the
    conversion that the adapter makes to read it.

    Args:
        isolated: The adapter.
        words: The options that the converter reads.
        files: Options with files of the user's, such as converted ones.
    """

    def __init__(self, isolated: IsolatedEngine, words: Sequence[str], files: Sequence[str]) -> None:
        self._files = tuple(files)
        self._isolated = isolated
        self._words = tuple(words)
        self._folder: Path | None = None

    def keep_in(self, folder: Path) -> None:
        """Cache later conversions in a folder."""
        self._folder = folder

    def compile(self, path: Path, model: "Model", words: Mapping[str, str], terms: ModelTerms) -> IsolatedSession:
        """Build an ONNX file, converting it unless that was done before.

        Args:
            path: The file.
            model: Its contents.
            words: Options for the adapter.
            terms: How the adapter's report is put in the terms of the model.

        Raises:
            TriageError: As `IsolatedEngine.compile`.
        """
        given = tuple(key for key in self._files if words.get(key))
        if self._folder is None:
            return self._isolated.compile(path, words, files=given, terms=terms)
        kept = self._folder / f"{self._key(model, words, given)}.converted"
        if kept.is_file():
            _logger.info("%s: a conversion of this model is in the case", self._isolated.title)
            known = {**words, CONVERTED: str(kept)}
            return self._isolated.compile(path, known, files=(*given, CONVERTED), terms=terms)
        session = self._isolated.compile(path, words, files=given, terms=terms)
        if given and "conversion_seconds" not in session.info:  # a given file runs, and nothing was converted
            return session
        try:
            _logger.info("%s: converted in %.3f s", self._isolated.title, session.info["conversion_seconds"])
            content = session.answer(CONVERTED)[1][CONVERTED]
            kept.parent.mkdir(parents=True, exist_ok=True)
            with placed(kept) as file:
                file.write(content.data)
        except BaseException:
            session.close()
            raise
        return session

    def _key(self, model: "Model", words: Mapping[str, str], given: Sequence[str]) -> str:
        names = [[node.name, *node.inputs, *node.outputs] for node in model.graph.nodes]
        read = {key: words[key] for key in self._words if key in words}
        place = packages_digest(words["worker"]) if "worker" in words else ""
        files = [hashlib.sha256(Path(words[key]).read_bytes()).hexdigest() for key in given]
        parts = [self._isolated.adapter, model.fingerprint, names, sorted(read.items()), place, files]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]

"""OpenVINO with a file of its own, made by ovc, NNCF, Optimum or an exporter: the engine ``openvino`` with ``file=``.

The file runs as it is. Its contents are read, too: as an ONNX model it is judged like every other file that was made of
the model, so that a wrong weight, a wrong range or a step too many is named.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from tensortriage.engines.sdk import (
    FILE,
    IsolatedSession,
    Model,
    ModelError,
    ModelTerms,
    OpenVinoEngine,
    TranslatesFiles,
    ValueSpec,
    read_options,
)
from tensortriage_engines.arrangement import ARRANGEMENT_OPTIONS, Arrangements, arrangements, only
from tensortriage_engines.converted import ArrangedSession, declared_of
from tensortriage_engines.openvino.intermediate import read

_TITLE = "OpenVINO"


class OpenVinoFileEngine(OpenVinoEngine, TranslatesFiles):
    """The engine ``openvino`` where a file is given."""

    options: ClassVar[Mapping[str, str]] = {**OpenVinoEngine.options, **ARRANGEMENT_OPTIONS}

    def arranges(self, options: Mapping[str, str]) -> bool:
        """Return True; see `ArrangesFiles`."""
        return True

    def building(self, options: Mapping[str, str]) -> Mapping[str, str]:
        """Return the options without the file, and without those about it; see `RunsFiles`."""
        return {key: value for key, value in options.items() if key not in (FILE, *ARRANGEMENT_OPTIONS)}

    def compile(self, model: Path, options: Mapping[str, str]) -> "FileSession":
        """Load the file in a worker, in place of a model.

        Raises:
            UsageError: For an unknown option or option value, or a file that is none of OpenVINO's.
            EngineMissing: When OpenVINO, the device or the precision is not available here.
            EngineError: When the build fails, crashes, hangs or runs out of memory.
        """
        given = read_options(options, self.options)
        path, arrangement = (
            Path(given.text(FILE)),
            {key: given.text(key) for key in ARRANGEMENT_OPTIONS if key in given},
        )
        words = self.words(self.building(options)) | {FILE: str(path), "weights": str(path.with_suffix(".bin"))}
        loaded = Model.of_file(model.absolute())
        declared = declared_of(loaded)
        rows = _rows(path, declared)
        words["names"] = json.dumps([[spec.name for spec in side] for side in rows])

        def build(path: Path, model: Model) -> IsolatedSession:
            arrange = lambda inputs, outputs: Arrangements(arrangements(declared, rows, arrangement))  # noqa: E731
            return self.isolated.compile(path, words, files=(FILE, "weights"), terms=ModelTerms(arrange=arrange))

        return FileSession(loaded, build, title=_TITLE, fixed_shapes=False)

    def translated(self, options: Mapping[str, str], model: Model, path: Path) -> str:
        """Write the computation of a file as an ONNX model; see `TranslatesFiles`."""
        import onnx

        from tensortriage_engines.openvino.network import Untranslatable
        from tensortriage_engines.openvino.translation import translated

        file, declared = read(Path(options[FILE])), declared_of(model)
        way = only(arrangements(declared, _rows(Path(options[FILE]), declared), options))
        try:
            made = translated(file, model, way, declared)
        except Untranslatable as error:
            raise ModelError(
                f"{error} of {options[FILE]} has no form in ONNX here", slug="file-not-read", cure="compare outputs"
            ) from error
        large = sum(len(each.raw_data) for each in made.graph.initializer) > 1 << 30
        onnx.save(made, str(path), save_as_external_data=large, location=f"{path.stem}.bin")
        half = any(each.data_type == onnx.TensorProto.FLOAT16 for each in made.graph.initializer)
        return "its weights are stored in fp16" if half else ""


class FileSession(ArrangedSession):
    """A loaded file; made by `OpenVinoFileEngine.compile`."""

    def plan(self) -> None:
        """Return None: the file's graph runs, not the model's."""
        return


def _rows(
    path: Path, declared: tuple[Sequence[ValueSpec], Sequence[ValueSpec]]
) -> tuple[list[ValueSpec], list[ValueSpec]]:
    """Return inputs and outputs of a file; integers count as real numbers where the model's are real."""
    from tensortriage_engines.openvino.translation import ends_of

    inputs, outputs = ends_of(read(path), declared)[0]
    return list(inputs), list(outputs)

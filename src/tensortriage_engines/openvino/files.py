"""OpenVINO with a file of its own, made by ovc, NNCF, Optimum or an exporter: the engine ``openvino`` with ``file=``.

The file runs as it is. Its contents are read, too: as an ONNX model it is judged like every other file that was made of
the model, so that a wrong weight, a wrong range or a step too many is named.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from tensortriage.engines.sdk import (
    FILE,
    IsolatedEngine,
    IsolatedSession,
    Model,
    ModelError,
    ModelTerms,
    Options,
    ValueSpec,
)
from tensortriage_engines.arrangement import ARRANGEMENT_OPTIONS, Arrangements, arrangements, only
from tensortriage_engines.converted import ArrangedSession, declared_of
from tensortriage_engines.openvino.intermediate import read


def opened(isolated: IsolatedEngine, settings: Mapping[str, str], given: Options, model: Path) -> "FileSession":
    """Load a given file in a worker, in place of a model; see `OpenVinoEngine.compile`.

    Args:
        isolated: The engine.
        settings: Options that are about no file, in the words of the adapter.
        given: All options.
        model: ONNX file.
    """
    path = Path(given.text(FILE))
    arrangement = {key: given.text(key) for key in ARRANGEMENT_OPTIONS if key in given}
    words = {**settings, FILE: str(path), "weights": str(path.with_suffix(".bin"))}
    loaded = Model.of_file(model.absolute())
    declared = declared_of(loaded)
    rows = _rows(path, declared)
    words["names"] = json.dumps([[spec.name for spec in side] for side in rows])

    def build(path: Path, model: Model) -> IsolatedSession:
        arrange = lambda inputs, outputs: Arrangements(arrangements(declared, rows, arrangement))  # noqa: E731
        return isolated.compile(path, words, files=(FILE, "weights"), terms=ModelTerms(arrange=arrange))

    return FileSession(loaded, build, title=isolated.title, fixed_shapes=False)


def translated(options: Mapping[str, str], model: Model, path: Path) -> str:
    """Write the computation of a given file as an ONNX model; see `TranslatesFiles`."""
    import onnx

    from tensortriage_engines.openvino.network import Untranslatable
    from tensortriage_engines.openvino.translation import translated as in_onnx

    file, declared = read(Path(options[FILE])), declared_of(model)
    way = only(arrangements(declared, _rows(Path(options[FILE]), declared), options))
    try:
        made = in_onnx(file, model, way, declared)
    except Untranslatable as error:
        raise ModelError(
            f"{error} of {options[FILE]} has no form in ONNX here", slug="file-not-read", cure="compare outputs"
        ) from error
    large = sum(len(each.raw_data) for each in made.graph.initializer) > 1 << 30
    onnx.save(made, str(path), save_as_external_data=large, location=f"{path.stem}.bin")
    half = any(each.data_type == onnx.TensorProto.FLOAT16 for each in made.graph.initializer)
    return "its weights are stored in fp16" if half else ""


class FileSession(ArrangedSession):
    """A loaded file; made by `opened`."""

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

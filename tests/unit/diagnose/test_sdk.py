"""What rungs of other packages are written with: names that stay, so that taking one away is seen."""

import inspect

from tensortriage.diagnose import sdk

NAMES = """
    Answer CHANGED_UNNAMED CORRECTLY_ROUNDED Casting Conclusion Confidence Culprit DType Dispute EXTERNAL
    EngineError EngineSpec Evidence FED_OTHERWISE Feed Findings Graph Investigation Lab LintFinding MemoryStore
    Model ModelError NewNode Node NodeOrigin OBSERVED PLAIN Precision Question Rung StoredValues TensorStore TriageError
    Unsound UsageError ValueSpec VerdictKind WEIGHTS_ALIKE WrongPart between check_feed disputes distances enumeration
    error_of error_size explode golden_operands insert_node is_foreign is_minor least_floor limits_of measure
    measured_outputs of_floor outside_envelope percent rung times triage_command unfailing value_specs
"""


def test_the_list_is_what_it_was():
    assert sorted(name for name in vars(sdk) if not name.startswith("_")) == sorted(NAMES.split())


def test_each_says_what_it_is():
    for name in NAMES.split():
        assert inspect.getdoc(getattr(sdk, name)), name

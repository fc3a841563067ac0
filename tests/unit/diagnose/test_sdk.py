"""What rungs of other packages are written with: names that stay, so that taking one away is seen."""

import inspect

from tensortriage.diagnose import sdk

NAMES = """
    Answer CHANGED_UNNAMED CORRECTLY_ROUNDED Conclusion Confidence Culprit DType Dispute EXTERNAL EngineError EngineSpec
    Evidence Feed Findings Graph Investigation Lab LintFinding MemoryStore Model Node NodeOrigin OBSERVED PLAIN
    Question Rung TriageError UsageError ValueSpec VerdictKind WEIGHTS_ALIKE WrongPart between disputes
    distances enumeration error_of error_size is_minor measure percent rung triage_command unfailing value_specs
    FED_OTHERWISE ModelError NewNode Precision Unsound insert_node is_foreign least_floor limits_of measured_outputs
    of_floor times
"""


def test_the_list_is_what_it_was():
    assert sorted(name for name in vars(sdk) if not name.startswith("_")) == sorted(NAMES.split())


def test_each_says_what_it_is():
    for name in NAMES.split():
        assert inspect.getdoc(getattr(sdk, name)), name

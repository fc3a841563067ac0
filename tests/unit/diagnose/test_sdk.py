"""What rungs of other packages are written with: names that stay, so that taking one away is seen."""

import inspect

from tensortriage.diagnose import sdk

NAMES = """
    Answer CHANGED_UNNAMED CORRECTLY_ROUNDED Casting Conclusion Confidence Culprit DType Dispute EXTERNAL
    EngineError EngineSpec Evidence Experiment FED_OTHERWISE Feed FeedResult Findings Graph Investigation Lab
    LintFinding MOVES_UNNAMED Measurement MemoryStore Model ModelError NewNode Node NodeOrigin OBSERVED
    OVERWRITTEN PLAIN Precision Question Rung StoredValues TensorStore TriageError Unsound UsageError ValueSpec
    VerdictKind WEIGHTS_ALIKE WrongPart another_feed batch_axes between beyond_format builds_vary check_feed
    count deployed disputes distances enumeration error_of error_size explode freeze gather_rows golden_operands
    insert_node is_foreign is_minor judge least_floor limits_of measure measured_outputs of_floor of_order
    output_floors outside_envelope percent run_order rung times triage_command unfailing value_specs
"""


def test_the_list_is_what_it_was():
    assert sorted(name for name in vars(sdk) if not name.startswith("_")) == sorted(NAMES.split())


def test_each_says_what_it_is():
    for name in NAMES.split():
        assert inspect.getdoc(getattr(sdk, name)), name

"""What rungs of other packages are written with: names that stay, so that taking one away is seen."""

import inspect

from tensortriage.diagnose import sdk

NAMES = """
    Answer Arranged CHANGED_UNNAMED CORRECTLY_ROUNDED CURED_BY_SETTING Casting Conclusion Confidence
    Correspondence Culprit DType Dispute EQUAL_IN_FP32 EXTERNAL EngineError EngineSpec Evidence Experiment
    FED_OTHERWISE Feed FeedResult Findings GIVEN_FILE Graph Investigation KEPT_BUILD Lab LintFinding
    MOVES_UNNAMED Measurement MemoryStore Model ModelError NewNode Node NodeOrigin OBSERVED OVERWRITTEN PLAIN
    Precision QUANTIZATION_COSTS Quantizer Question Rung StoredValues TensorStore TriageError Unsound UsageError
    ValueSpec VerdictKind WEIGHTS_ALIKE WrongPart another_feed arranged batch_axes between beyond_format
    beyond_fp32 builds_vary check_feed command_without_inputs compare_outputs count deployed difference_in_kind
    disputes distances enumeration error_of error_size explode extract fed_to freeze gather_rows golden_operands
    held_network inner_values insert_node is_decisive is_foreign is_minor is_suspect_ratio judge lay_out
    least_floor limits_of marking_restores measure measured_outputs narrow_nodes narrowed of_floor of_order
    order_words output_floors outside_envelope over_floor percent quantizers restored reversed_along
    rms_error run_command run_order rung
    scan_ranges stored_type swapped times triage_command unfailing value_specs with_taken_branches
    FAILURES Outcome OutcomeKind ShapeRow has_nan rows_in_words
"""


def test_the_list_is_what_it_was():
    assert sorted(name for name in vars(sdk) if not name.startswith("_")) == sorted(NAMES.split())


def test_each_says_what_it_is():
    for name in NAMES.split():
        assert inspect.getdoc(getattr(sdk, name)), name

"""Stable names for packages that run engines and judge them, besides `tensortriage.sdk` and `tensortriage.api`.

The lab and what it runs, healthy evaluations, limits, and how an error is measured. All of it is loaded at once; import
it where a command works, not where it is declared.
"""

from tensortriage.compare.judgement.judgement import Judgement as Judgement
from tensortriage.compare.judgement.ranked import compare_extremes as compare_extremes
from tensortriage.compare.judgement.relative_error import difference as difference
from tensortriage.compare.judgement.relative_error import error_of as error_of
from tensortriage.compare.judgement.relative_error import ratio_of as ratio_of
from tensortriage.compare.judgement.within import is_minor as is_minor
from tensortriage.compare.judgement.within import within_limit as within_limit
from tensortriage.compare.metrics.random_projection import project_rows as project_rows
from tensortriage.compare.metrics.tensor_metrics import Metrics as Metrics
from tensortriage.compare.metrics.tensor_metrics import measure_many as measure_many
from tensortriage.compare.next_token import NextToken as NextToken
from tensortriage.compare.next_token import compare_next as compare_next
from tensortriage.compare.reference_checks import mismatched as mismatched
from tensortriage.compare.reference_checks import require_numbers as require_numbers
from tensortriage.engines.registry import resolve as resolve
from tensortriage.engines.spec import PLAIN as PLAIN
from tensortriage.envelope.elements import format_radius as format_radius
from tensortriage.envelope.elements import fp32_radius as fp32_radius
from tensortriage.envelope.explanations import CORRECTLY_ROUNDED as CORRECTLY_ROUNDED
from tensortriage.envelope.explanations import PREDICTED as PREDICTED
from tensortriage.envelope.healthy_values import CENTRE as CENTRE
from tensortriage.envelope.healthy_values import HealthyValues as HealthyValues
from tensortriage.envelope.healthy_values import healthy_of as healthy_of
from tensortriage.envelope.healthy_values import limit_of as limit_of
from tensortriage.envelope.limits import Limit as Limit
from tensortriage.envelope.limits import judged_by as judged_by
from tensortriage.envelope.limits import of_draws as of_draws
from tensortriage.envelope.registry import draws_of as draws_of
from tensortriage.inputs.conform import check_feed as check_feed
from tensortriage.inputs.feed import Origin as Origin
from tensortriage.inputs.files.data_file import Iteration as Iteration
from tensortriage.inputs.files.data_file import Kind as Kind
from tensortriage.inputs.files.save_data import save as save
from tensortriage.inputs.synthetic.batch_rows import Rows as Rows
from tensortriage.inputs.synthetic.batch_rows import another_feed as another_feed
from tensortriage.inputs.synthetic.batch_rows import batch_axes as batch_axes
from tensortriage.inputs.synthetic.batch_rows import gather_rows as gather_rows
from tensortriage.inputs.synthetic.random import random_feeds as random_feeds
from tensortriage.model.mixed_precision.emulate_rounding import round_results as round_results
from tensortriage.model.transforms.fed_tables import feed_tables as feed_tables
from tensortriage.model.transforms.fed_tables import tables as tables
from tensortriage.runs.engine_specs import usable as usable
from tensortriage.runs.feeds.feed_request import feeds as feeds
from tensortriage.runs.feeds.trial import feeds_that_run as feeds_that_run
from tensortriage.runs.lab import Lab as Lab
from tensortriage.runs.outcome import OK as OK
from tensortriage.runs.outcome import Outcome as Outcome
from tensortriage.runs.outcome import OutcomeKind as OutcomeKind
from tensortriage.runs.scripts import ScriptFunction as ScriptFunction
from tensortriage.values.dtype import DType as DType
from tensortriage.values.dtype import Precision as Precision
from tensortriage.values.spec import ValueSpec as ValueSpec

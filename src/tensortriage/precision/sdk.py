"""Stable names for packages that write models in a number format, besides `tensortriage.sdk`.

Such a package is found by entry points: the options of ``convert`` by those of `tensortriage.sdk.Conversion`, the
candidates of ``debug precision`` by those of `NumberFormat`. It runs models by a `Lab`, takes the goal for their
outputs from a `PrecisionGoal`, and edits them by the core's helpers, which keep names unique.
"""

from tensortriage.compare.alignment.value_matching import MATCH_SCALE as MATCH_SCALE
from tensortriage.compare.judgement.relative_error import decibels as decibels
from tensortriage.compare.judgement.relative_error import sqnr_db as sqnr_db
from tensortriage.compare.judgement.within import is_lost as is_lost
from tensortriage.compare.judgement.within import near_prediction as near_prediction
from tensortriage.compare.quantization.quantizer_fit import Meant as Meant
from tensortriage.compare.quantization.quantizer_fit import QuantizerFit as QuantizerFit
from tensortriage.compare.quantization.quantizer_fit import Rectifier as Rectifier
from tensortriage.compare.quantization.quantizer_fit import activations as activations
from tensortriage.compare.quantization.quantizer_fit import calibrate as calibrate
from tensortriage.compare.quantization.quantizer_fit import integer_range as integer_range
from tensortriage.compare.quantization.quantizer_fit import rectifiers as rectifiers
from tensortriage.compare.reference_checks import require_numbers as require_numbers
from tensortriage.engines.cpu_features import sums_in_int16 as sums_in_int16
from tensortriage.engines.spec import PLAIN as PLAIN
from tensortriage.inputs.feed import feed_digest as feed_digest
from tensortriage.inputs.feed import origin_of as origin_of
from tensortriage.model.cutting.node_selection import NodeChoice as NodeChoice
from tensortriage.model.cutting.node_selection import choose_nodes as choose_nodes
from tensortriage.model.ir.graph import Graph as Graph
from tensortriage.model.ir.graph import Node as Node
from tensortriage.model.model import ExternalData as ExternalData
from tensortriage.model.quantization.qdq import quantizers as quantizers
from tensortriage.model.quantization.qdq import seven_bit_weights as seven_bit_weights
from tensortriage.model.transforms.opset_upgrade import require_opset as require_opset
from tensortriage.model.transforms.rewrite_helpers import Names as Names
from tensortriage.model.transforms.rewrite_helpers import initializer as initializer
from tensortriage.model.transforms.rewrite_helpers import prune_initializers as prune_initializers
from tensortriage.model.transforms.rewrite_helpers import replace_output as replace_output
from tensortriage.precision.goal import ErrorGoal as ErrorGoal
from tensortriage.precision.goal import GoalReading as GoalReading
from tensortriage.precision.goal import GoalSample as GoalSample
from tensortriage.precision.goal import MetricGoal as MetricGoal
from tensortriage.precision.goal import PrecisionGoal as PrecisionGoal
from tensortriage.precision.goal import identity_of as identity_of
from tensortriage.precision.goal import mean_metric as mean_metric
from tensortriage.precision.low_precision_work import multiplications as multiplications
from tensortriage.precision.search.number_formats import Calibrating as Calibrating
from tensortriage.precision.search.number_formats import CommandCandidates as CommandCandidates
from tensortriage.precision.search.number_formats import NumberFormat as NumberFormat
from tensortriage.precision.search.number_formats import Opened as Opened
from tensortriage.precision.search.number_formats import Samples as Samples
from tensortriage.precision.search.shared_parts import in_order as in_order
from tensortriage.precision.search.shared_parts import samples_of as samples_of
from tensortriage.precision.selection.emulation import Emulation as Emulation
from tensortriage.precision.selection.emulation import Switches as Switches
from tensortriage.precision.selection.engine_confirmation import Questions as Questions
from tensortriage.precision.selection.engine_confirmation import explained as explained
from tensortriage.precision.selection.engine_confirmation import settle as settle
from tensortriage.precision.selection.node_groups import groups_of as groups_of
from tensortriage.precision.selection.switchable_model import Choosable as Choosable
from tensortriage.precision.selection.typed_candidates import Candidates as Candidates
from tensortriage.precision.selection.typed_candidates import EngineSetup as EngineSetup
from tensortriage.precision.selection.typed_candidates import deployed as deployed
from tensortriage.runs.engine_specs import usable as usable
from tensortriage.runs.feeds.trial import feeds_that_run as feeds_that_run
from tensortriage.runs.lab import Lab as Lab
from tensortriage.runs.lab import Run as Run
from tensortriage.runs.questions.golden_values import GoldenValues as GoldenValues
from tensortriage.runs.questions.suggested_commands import triage_command as triage_command
from tensortriage.runs.task_metric import TaskMetric as TaskMetric
from tensortriage.values.dtype import DType as DType
from tensortriage.values.dtype import Precision as Precision
from tensortriage.values.spec import ValueSpec as ValueSpec

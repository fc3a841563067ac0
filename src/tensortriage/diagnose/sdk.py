"""What a rung of another package is written with: names that stay.

A rung is a function decorated with `rung`, registered under `tensortriage.diagnose.ladder.GROUP`. It asks engines
through ``Investigation.lab``, which remembers, and judges what they answer by the envelope (`disputes`, `distances`).
"""

from tensortriage.compare.judgement.relative_error import error_of as error_of
from tensortriage.compare.judgement.relative_error import least_floor as least_floor
from tensortriage.compare.judgement.thresholds import WEIGHTS_ALIKE as WEIGHTS_ALIKE
from tensortriage.compare.judgement.within import is_minor as is_minor
from tensortriage.compare.metrics.tensor_metrics import measure as measure
from tensortriage.diagnose.measurements.evidence import Evidence as Evidence
from tensortriage.diagnose.measurements.evidence import Findings as Findings
from tensortriage.diagnose.measurements.evidence import WrongPart as WrongPart
from tensortriage.diagnose.measurements.judging import limits_of as limits_of
from tensortriage.diagnose.measurements.local_errors.golden_operands import golden_operands as golden_operands
from tensortriage.diagnose.measurements.outputs import Unsound as Unsound
from tensortriage.diagnose.measurements.outputs import measured_outputs as measured_outputs
from tensortriage.diagnose.rungs.rung import Answer as Answer
from tensortriage.diagnose.rungs.rung import Rung as Rung
from tensortriage.diagnose.rungs.rung import rung as rung
from tensortriage.diagnose.state.confidence import CHANGED_UNNAMED as CHANGED_UNNAMED
from tensortriage.diagnose.state.confidence import FED_OTHERWISE as FED_OTHERWISE
from tensortriage.diagnose.state.confidence import OBSERVED as OBSERVED
from tensortriage.diagnose.state.confidence import Confidence as Confidence
from tensortriage.diagnose.state.confidence import unfailing as unfailing
from tensortriage.diagnose.state.investigation import Investigation as Investigation
from tensortriage.diagnose.state.verdict import Conclusion as Conclusion
from tensortriage.diagnose.state.verdict import Culprit as Culprit
from tensortriage.diagnose.state.verdict import VerdictKind as VerdictKind
from tensortriage.engines.registry import is_foreign as is_foreign
from tensortriage.engines.spec import PLAIN as PLAIN
from tensortriage.engines.spec import EngineSpec as EngineSpec
from tensortriage.envelope.distances import EXTERNAL as EXTERNAL
from tensortriage.envelope.distances import distances as distances
from tensortriage.envelope.explanations import CORRECTLY_ROUNDED as CORRECTLY_ROUNDED
from tensortriage.envelope.limits import of_floor as of_floor
from tensortriage.envelope.reference import Dispute as Dispute
from tensortriage.envelope.reference import disputes as disputes
from tensortriage.envelope.reference import outside_envelope as outside_envelope
from tensortriage.errors import EngineError as EngineError
from tensortriage.errors import ModelError as ModelError
from tensortriage.errors import TriageError as TriageError
from tensortriage.errors import UsageError as UsageError
from tensortriage.inputs.conform import Casting as Casting
from tensortriage.inputs.conform import check_feed as check_feed
from tensortriage.inputs.feed import Feed as Feed
from tensortriage.model.cutting.between import between as between
from tensortriage.model.cutting.explode import explode as explode
from tensortriage.model.ir.graph import Graph as Graph
from tensortriage.model.ir.graph import Node as Node
from tensortriage.model.lint.finding import LintFinding as LintFinding
from tensortriage.model.model import Model as Model
from tensortriage.model.provenance.origin import NodeOrigin as NodeOrigin
from tensortriage.model.shape_inference.value_specs import value_specs as value_specs
from tensortriage.model.transforms.insert_node import NewNode as NewNode
from tensortriage.model.transforms.insert_node import insert_node as insert_node
from tensortriage.runs.lab import Lab as Lab
from tensortriage.runs.questions.question import Question as Question
from tensortriage.runs.questions.suggested_commands import triage_command as triage_command
from tensortriage.values.dtype import DType as DType
from tensortriage.values.dtype import Precision as Precision
from tensortriage.values.spec import ValueSpec as ValueSpec
from tensortriage.values.store import MemoryStore as MemoryStore
from tensortriage.values.text import enumeration as enumeration
from tensortriage.values.text import error_size as error_size
from tensortriage.values.text import percent as percent
from tensortriage.values.text import times as times

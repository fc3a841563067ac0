"""Stable names for packages that inspect models, besides `tensortriage.sdk` and `tensortriage.api`.

Nodes and values as rules see them, cutting, and findings. All of it is loaded at once; import it where a command works,
not where it is declared.
"""

from tensortriage.model.cutting.cut_units import inseparable_units as inseparable_units
from tensortriage.model.cutting.extract import extract as extract
from tensortriage.model.inspect.outline import ConstantFacts as ConstantFacts
from tensortriage.model.inspect.outline import attribute_text as attribute_text
from tensortriage.model.inspect.outline import constant_value as constant_value
from tensortriage.model.inspect.outline import op_label as op_label
from tensortriage.model.inspect.output_parts import output_parts as output_parts
from tensortriage.model.inspect.repeated_blocks import RepeatedBlock as RepeatedBlock
from tensortriage.model.inspect.repeated_blocks import repeated_blocks as repeated_blocks
from tensortriage.model.inspect.weight_summary import WeightFacts as WeightFacts
from tensortriage.model.inspect.weight_summary import blocks as blocks
from tensortriage.model.inspect.weight_summary import weight_facts as weight_facts
from tensortriage.model.io.parse import Message as Message
from tensortriage.model.ir.graph import Node as Node
from tensortriage.model.ir.messages import all_nodes as all_nodes
from tensortriage.model.ir.messages import bodies as bodies
from tensortriage.model.lint import training as training
from tensortriage.model.lint.finding import NARROW as NARROW
from tensortriage.model.lint.finding import Aims as Aims
from tensortriage.model.lint.subject import LintSubject as LintSubject
from tensortriage.model.lint.subject import subjects as subjects
from tensortriage.model.model import Model as Model
from tensortriage.model.operator_bodies.operator_body import array_of as array_of
from tensortriage.model.provenance.origin import UNKNOWN as UNKNOWN
from tensortriage.model.quantization.blocked import BlockedQuantizer as BlockedQuantizer
from tensortriage.model.quantization.blocked import blocked_quantizers as blocked_quantizers
from tensortriage.model.quantization.blocked import made_of_constants as made_of_constants
from tensortriage.model.quantization.qdq import Quantizer as Quantizer
from tensortriage.model.quantization.qdq import are_symmetric as are_symmetric
from tensortriage.model.quantization.qdq import dequantized as dequantized
from tensortriage.model.quantization.qdq import is_quantizer as is_quantizer
from tensortriage.model.quantization.qdq import may_rectify as may_rectify
from tensortriage.model.quantization.qdq import uses_half_range as uses_half_range
from tensortriage.model.quantization.qdq import uses_seven_bits as uses_seven_bits
from tensortriage.model.quantization.qdq_pairs import QuantizerSwitches as QuantizerSwitches
from tensortriage.model.quantization.qdq_pairs import switch_pairs as switch_pairs
from tensortriage.model.shape_inference.annotate import forget_shapes as forget_shapes
from tensortriage.model.shape_inference.value_specs import value_specs as value_specs
from tensortriage.model.similarity.correspondence import Correspondence as Correspondence
from tensortriage.model.transforms.bound_sizes import UnboundedSize as UnboundedSize
from tensortriage.model.transforms.inline_functions import inline_functions as inline_functions
from tensortriage.model.transforms.opset_upgrade import require_opset as require_opset
from tensortriage.model.transforms.rewrite_helpers import initializer as initializer
from tensortriage.model.transforms.rewrite_helpers import is_standard as is_standard
from tensortriage.values.spec import ValueSpec as ValueSpec

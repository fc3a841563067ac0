"""Stable names for writing an engine, inside this package or outside of it.

`IsolatedEngine` is for engines that work in a worker; `ConvertedEngine` of `tensortriage_engines.converted`, for those
with a converter, is written with these names. The names about the model load onnx, on first use; import them inside
functions.
"""

from typing import TYPE_CHECKING

from tensortriage.engines.base import Availability as Availability
from tensortriage.engines.base import Choice as Choice
from tensortriage.engines.base import Engine as Engine
from tensortriage.engines.base import Limits as Limits
from tensortriage.engines.base import Plan as Plan
from tensortriage.engines.base import Region as Region
from tensortriage.engines.base import Session as Session
from tensortriage.engines.capabilities import *  # noqa: F403 - each is a name of its own
from tensortriage.engines.feed_checks import build_failed as build_failed
from tensortriage.engines.feed_checks import checked_feed as checked_feed
from tensortriage.engines.feed_checks import fits as fits
from tensortriage.engines.options import Options as Options
from tensortriage.engines.options import read_options as read_options
from tensortriage.engines.process.by_shape import Build as Build
from tensortriage.engines.process.by_shape import SessionByShape as SessionByShape
from tensortriage.engines.process.given_files import FILE as FILE
from tensortriage.engines.process.given_files import Arrange as Arrange
from tensortriage.engines.process.given_files import HeldOtherwise as HeldOtherwise
from tensortriage.engines.process.given_files import checked_file as checked_file
from tensortriage.engines.process.given_files import without_file as without_file
from tensortriage.engines.process.interpreters import WORKER_OPTION as WORKER_OPTION
from tensortriage.engines.process.interpreters import packages_digest as packages_digest
from tensortriage.engines.process.isolated import IsolatedEngine as IsolatedEngine
from tensortriage.engines.process.isolated import IsolatedSession as IsolatedSession
from tensortriage.engines.process.isolated import installed as installed
from tensortriage.engines.process.model_terms import ModelTerms as ModelTerms
from tensortriage.engines.process.rebuilt_session import RebuiltSession as RebuiltSession
from tensortriage.engines.registry import create as create
from tensortriage.engines.session_capabilities import *  # noqa: F403
from tensortriage.engines.spec import HARDWARE as HARDWARE
from tensortriage.engines.spec import EngineSpec as EngineSpec
from tensortriage.errors import BuildFailed as BuildFailed
from tensortriage.errors import DataError as DataError
from tensortriage.errors import EngineError as EngineError
from tensortriage.errors import EngineHung as EngineHung
from tensortriage.errors import EngineMissing as EngineMissing
from tensortriage.errors import ModelError as ModelError
from tensortriage.errors import RunFailed as RunFailed
from tensortriage.errors import TriageError as TriageError
from tensortriage.errors import UsageError as UsageError
from tensortriage.values.dtype import DType as DType
from tensortriage.values.dtype import Precision as Precision
from tensortriage.values.files import placed as placed
from tensortriage.values.files import read_regular as read_regular
from tensortriage.values.first_use import on_first_use as on_first_use
from tensortriage.values.grouping import grouped as grouped
from tensortriage.values.spec import ValueSpec as ValueSpec

if TYPE_CHECKING:
    from tensortriage.model.ir.graph import Graph as Graph
    from tensortriage.model.ir.specs import input_specs as input_specs
    from tensortriage.model.mixed_precision.convert_precision import convert as convert
    from tensortriage.model.model import Model as Model
    from tensortriage.model.provenance.network_outputs import noted_outputs as noted_outputs
    from tensortriage.model.provenance.origin import FX_NODE as FX_NODE
    from tensortriage.model.provenance.origin import NodeOrigin as NodeOrigin
    from tensortriage.model.provenance.origin import read_origin as read_origin
    from tensortriage.model.shape_inference.annotate import with_input_shapes as with_input_shapes
    from tensortriage.model.shape_inference.value_specs import value_specs as value_specs
    from tensortriage.model.transforms.mark_outputs import mark_outputs as mark_outputs


__getattr__ = on_first_use(__name__, __file__)

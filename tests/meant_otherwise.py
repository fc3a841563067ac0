"""Small models of one operator, rewritten by rows of the table of meanings and run by ONNX Runtime."""

import numpy as np
import onnx_ir as ir
import onnxruntime

from models import parse
from tensortriage.model.io.serialize import to_bytes
from tensortriage.model.model import Model
from tensortriage_meanings.rewrite import Rewriter
from tensortriage_meanings.search import sites_of


def model(body: str, *, opset: int = 17) -> Model:
    """Return a model of ONNX's text syntax without its header."""
    return parse(f'<ir_version: 8, opset_import: ["": {opset}]>\n{body}')


def run(one: Model, **feed: np.ndarray) -> np.ndarray:
    """Return the first output, every node computed as it stands."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(to_bytes(ir.to_proto(one.ir)), options)
    return session.run(None, feed)[0]


def meant(one: Model, table, words: str) -> Model:
    """Return a model as it is by the only way of a table whose words hold some."""
    rewriter = Rewriter(one)
    (ways,) = (each for each in sites_of(rewriter, table) if words in next(iter(each.values())).words)
    return rewriter.rewritten(ways)

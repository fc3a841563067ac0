"""``triage check lint``: known problems of a model, by rules, onnx.checker, and every node on an engine."""

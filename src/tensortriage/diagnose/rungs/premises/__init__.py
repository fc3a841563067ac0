"""Is there a failure of the engine at all? Repetition, inputs, shapes, model, reference."""

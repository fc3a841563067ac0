"""Is there a failure of the engine at all? Inputs, shapes, model, network, reference."""

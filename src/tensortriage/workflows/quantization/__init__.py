"""8-bit models: making them, and inspecting their quantizers."""

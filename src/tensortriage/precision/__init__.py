"""Which nodes need more bits than the rest: influence, choice, proof on the engine, and the model that has them."""

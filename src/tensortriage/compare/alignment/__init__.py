"""Which tensor of the target belongs to which tensor of the reference."""

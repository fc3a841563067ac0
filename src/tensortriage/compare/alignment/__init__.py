"""Pairing of the target's tensors with the reference's."""

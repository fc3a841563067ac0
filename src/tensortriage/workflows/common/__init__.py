"""What many workflows share: which tensors are looked at, and who judges them by the envelope."""

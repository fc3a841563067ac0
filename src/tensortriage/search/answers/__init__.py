"""The answers that a search rests on: cached, repeated, computed ahead."""

"""The question, budget and result of a diagnosis."""

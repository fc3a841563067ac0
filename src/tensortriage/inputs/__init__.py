"""Feeds: the sets of input tensors that models are run on, read from files, scripts or made up from a seed."""

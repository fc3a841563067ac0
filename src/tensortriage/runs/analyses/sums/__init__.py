"""The terms behind the sums of a model: how large their terms get, and how far they cancel."""

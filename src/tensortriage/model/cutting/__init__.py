"""Parts of a model as models of their own: which nodes, where to cut, and what to feed there."""

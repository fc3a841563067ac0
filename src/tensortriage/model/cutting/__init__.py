"""Parts of a model as models of their own: their nodes, the place to cut, and their feeds."""

"""The table of known differences of meaning, by how a model is rewritten: attributes, bodies of nodes, constants."""

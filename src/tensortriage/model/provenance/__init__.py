"""Origin of the nodes of a model: module, class and line of the source network, as exporters leave them."""

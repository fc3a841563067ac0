"""Where the nodes of a model come from: module, class and line of the source network, as exporters leave them."""

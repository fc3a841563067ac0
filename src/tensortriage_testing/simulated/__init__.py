"""A simulated accelerator: what healthy hardware may do to a model, one freedom per option, written in plain numpy."""

"""A simulated accelerator: the freedoms of healthy hardware, one per option, written in plain numpy."""

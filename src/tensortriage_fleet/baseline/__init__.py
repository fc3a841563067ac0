"""``triage baseline``: what engines make of a folder of models, kept with the code, and checked against it later."""

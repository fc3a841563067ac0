"""``triage baseline``: results of a folder of models, stored with the code and checked against it later."""

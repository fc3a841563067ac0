"""The conformance suite: the properties that callers rely on in an engine, and a trial of one in an environment."""

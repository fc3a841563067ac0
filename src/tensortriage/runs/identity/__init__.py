"""The identity of an engine, for answers in the cache: all the code that it runs."""

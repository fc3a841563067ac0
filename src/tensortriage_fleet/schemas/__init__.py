"""JSON Schemas of all documents, made by ``docs/make_schemas.py``, and ``triage inspect schema``, which prints them."""

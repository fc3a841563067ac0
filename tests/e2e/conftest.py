"""Fixtures of the end-to-end tests."""

import pytest

import shared_diagnoses


@pytest.fixture
def diagnosed(tmp_path, tmp_path_factory):
    """Return a function that copies the diagnosis of a name in `shared_diagnoses.WORDS` into the test's folder."""
    return lambda name: shared_diagnoses.diagnosed(name, tmp_path, tmp_path_factory)

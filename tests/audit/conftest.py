"""The decoders of these tests are quick."""

import pytest


@pytest.fixture(scope="module", autouse=True)
def brief_decoders(briefly):
    """No test here is about how well a decoder does."""

"""Coroutine tests run on every loop there is; see `tests.loops`."""

from tests.loops import pytest_generate_tests, pytest_pyfunc_call

__all__ = ["pytest_generate_tests", "pytest_pyfunc_call"]

"""Tests of what has to work on Windows, on a Python that lacks what Windows lacks."""

"""Tests of what is published."""

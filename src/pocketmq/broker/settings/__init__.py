"""Changing settings at run time, and keeping the changes."""

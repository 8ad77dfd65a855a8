"""Tests of PocketMQ inside other frameworks, with the real ones."""

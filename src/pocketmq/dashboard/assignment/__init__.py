"""The live assignment of a group: who holds which queue, since when, why, and what if."""

"""Every request: its headers and its row of the catalogue, a module per feature."""

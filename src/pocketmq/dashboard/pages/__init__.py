"""The pages, one idea each; every module adds its own to the application."""

"""The pages; each module adds its own to the application."""

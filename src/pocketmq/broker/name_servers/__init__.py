"""The broker and its name servers: registration, and the routes of topics."""

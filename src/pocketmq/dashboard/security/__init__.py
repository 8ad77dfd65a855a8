"""Who may reach the pages: host and origin checks, login, headers that protect browsers."""

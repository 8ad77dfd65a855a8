"""The header of every request and response, by feature; `by_code` says which code has which."""

"""From a request to its handler, and the requests that are refused."""

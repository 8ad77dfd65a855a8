"""From a request to its answer: dispatch, refusals, and answers that wait for the store."""

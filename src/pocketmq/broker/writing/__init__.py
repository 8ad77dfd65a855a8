"""The one way into the store: drafts of messages, appending, and answers once they are written."""

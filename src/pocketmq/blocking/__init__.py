"""The blocking clients: the asyncio ones, driven from ordinary threads.

All decisions are the asyncio clients'; here is how a thread hands work to their loop and waits, and
the short way for a send that reads its own socket. Importing a name of `pocketmq` imports its
module here.
"""

"""The blocking clients: the asyncio ones, driven from ordinary threads.

All decisions are made by the same rules as in the asyncio clients. Here is how a thread hands work
over to their loop and waits, and how a caller carries out a send or a question on its own thread,
over a connection of its own. Importing a name of `pocketmq` imports its module here.
"""

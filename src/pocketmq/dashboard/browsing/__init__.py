"""Reading a topic newest first: pages back in time, a live tail, a content filter."""

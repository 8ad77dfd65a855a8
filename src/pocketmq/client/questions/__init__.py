"""Questions to servers, written once for asyncio, for threads and for tools; sans-IO."""

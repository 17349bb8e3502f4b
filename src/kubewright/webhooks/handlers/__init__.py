"""How handler functions run: async ones on the event loop, synchronous ones in threads. Not what they are asked."""

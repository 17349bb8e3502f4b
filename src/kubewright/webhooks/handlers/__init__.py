"""How a handler function is called: on the loop or in a thread. Not what it is asked."""

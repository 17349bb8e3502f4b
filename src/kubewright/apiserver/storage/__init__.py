"""Objects as bytes, with versions, history and a journal. Not HTTP, not kinds."""

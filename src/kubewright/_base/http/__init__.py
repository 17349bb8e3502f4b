"""HTTP/1.1, the server's side: for webhooks, probes and metrics of an operator, and for the embedded API server.

Not the client's side, which is `client.transport`. Not what is asked and answered: the caller brings a handler.
"""

"""From a request to the verb that answers it: routing, flow control, audit, metrics, discovery, health. Not what the
verbs do."""

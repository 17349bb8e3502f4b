"""The handler chain in front of the verbs: routing, flow control, audit, metrics, discovery, health.

It decides who handles a request; `verbs` handle it.
"""

"""Admission webhooks: declarations, requests, responses, and the call of the handler. Not certificates, not
registration.
"""

"""The storage backend: encoded objects by key, resource versions, history for watches, and a journal on disk.

It is etcd and the watch cache in one; it knows neither HTTP nor kinds.
"""

"""An operator that keeps memcached running: `api` is the kind, `controller` what is done about it."""

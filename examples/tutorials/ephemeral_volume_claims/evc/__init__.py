"""An operator for volumes that go when nobody uses them: `api` is the kind, `controller` what is done about it."""

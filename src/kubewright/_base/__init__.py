"""What every layer may use: clock, back-off, event loop, YAML, version. No Kubernetes word in here."""

"""What every package may use: clock, back-off, event loop, tasks, logs, metrics, tracing, certificates, YAML, HTTP
server.

Kubernetes appears only as a file format (YAML as Kubernetes reads it, certificates for its users): no kinds, no API.
Imports nothing of Kubewright but `errors`.
"""

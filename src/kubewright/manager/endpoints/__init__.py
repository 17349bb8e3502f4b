"""What a process serves about itself: /healthz and /readyz, /metrics, /debug. Webhooks are in `kubewright.webhooks`."""

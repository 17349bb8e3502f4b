"""CEL expressions of webhook configurations and policies: compiled, and checked when they are written. Not the
language; see `kubewright.cel`."""

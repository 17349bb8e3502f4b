"""The certificate and key files of a local control plane. `_base.certificates` makes their contents."""

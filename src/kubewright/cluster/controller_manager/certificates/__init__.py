"""The controller of CertificateSigningRequests and the signers of Kubernetes."""

"""CertificateSigningRequests: approved, signed, cleaned up."""

"""Kinds of the admissionregistration group, one module per version."""

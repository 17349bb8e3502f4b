"""Structural schemas: made from classes (`schema.builder`), and objects checked against them (`schema.check`)."""

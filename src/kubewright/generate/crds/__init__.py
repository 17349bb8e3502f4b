"""CustomResourceDefinitions from classes, and whether a new one may replace an old one. Not the schema itself; see
`schema.builder`."""

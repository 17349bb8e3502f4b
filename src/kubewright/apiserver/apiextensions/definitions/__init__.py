"""CustomResourceDefinitions: what a server does with them, as plain functions on their trees."""

"""Custom resources: versions, strategy, CEL rules, conversion. Not the routes to them; see `controllers.crds`."""

"""Controllers: from changes to reconcile calls. Declarations, sources, workers, and what a reconciler may do."""

"""From a patch and an object to the patched object: JSON patch, merge patch and strategic merge patch. Pure functions,
called by `verbs.patch`. Server-side apply is not here but in `verbs.apply` and `managedfields`."""

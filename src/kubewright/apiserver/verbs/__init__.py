"""What each verb does to objects: get, list, watch, create, update, patch, delete, and the subresources. Not who may,
not routes."""

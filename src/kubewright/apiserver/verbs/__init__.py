"""What each verb does to objects: get, list, watch, create, update, patch, delete, and the subresources. The router in
`front` has authenticated and authorized the request before."""

"""The NodeRestriction plugin: a node writes about itself and the pods bound to it only.

`plugin` is the plugin; `pods`, `nodes` and `tokens` check what it is about.
"""

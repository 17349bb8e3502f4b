"""Builders of the objects that many tests need: pods, nodes, workloads, Services, claims, definitions.

Without a suffix they return objects of the typed classes, as a server keeps them; `..._tree` returns the same as the
JSON body of a request. The name comes first, everything else is a keyword; what a builder does not know goes into the
spec, in the spelling of the API (`nodeName=`). Each docstring says what the defaults are.

A test that needs one odd object makes it itself.
"""

"""One process: start order, leader election, health, metrics, stop.

Import from the modules: nothing is imported here, so that the options alone do not load the rest.
"""

"""Warnings for whoever writes a built-in object that is accepted all the same. Not refusals."""

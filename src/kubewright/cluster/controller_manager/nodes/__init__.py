"""The controllers of nodes and of the pods on lost nodes."""

"""Printers: the columns and rows of a Table, which `kubectl get` prints.

`columns` has the column definitions of each kind, `rows` finds the printer of a kind. Built-in kinds are printed as by
k8s.io/kubernetes/pkg/printers/internalversion/printers.go (`pods`, `workloads`, `networks`, `volumes`, `policies`,
`others`), custom resources by the printer columns of their CRD (`custom`, with `jsonpath`). Nothing in here changes
an object.
"""

from kubewright.apiserver.printers.columns import column_definitions, scale_columns
from kubewright.apiserver.printers.rows import cells, row_conditions, row_order, scale_cells

__all__ = ("cells", "column_definitions", "row_conditions", "row_order", "scale_cells", "scale_columns")

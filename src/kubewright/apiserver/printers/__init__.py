"""Objects as rows of a table: what `kubectl get` shows.

`columns` says which columns a kind has, `rows` what stands in them. Built-in kinds print as kube-apiserver's own
printers do (`pods`, `workloads`, `networks`, `volumes`, `policies`, `others`); custom resources print what their
definition asks for (`custom`, by `jsonpath`). Trees are read only.
"""

from kubewright.apiserver.printers.columns import column_definitions, scale_columns
from kubewright.apiserver.printers.rows import cells, row_conditions, row_order, scale_cells

__all__ = ("cells", "column_definitions", "row_conditions", "row_order", "scale_cells", "scale_columns")

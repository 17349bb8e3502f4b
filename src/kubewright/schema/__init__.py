"""Structural schemas: made from classes (`schema.builder`), and objects checked against them (`schema.check`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubewright._base.lazy import lazy

if TYPE_CHECKING:
    from kubewright.schema.builder.builder import schema_for, schema_for_kind
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "kubewright.schema.builder.builder": ("schema_for", "schema_for_kind"),
        },
    )

__all__ = ("schema_for", "schema_for_kind")

"""Strategic merge patches: the form of patch kubectl sends for built-in kinds."""

from __future__ import annotations

from kubewright.apiserver.verbs.patches.strategic_merge.patch import apply_strategic_patch

__all__ = ("apply_strategic_patch",)

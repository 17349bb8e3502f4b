"""Strategic merge patches, which kubectl sends for built-in kinds.

kube-apiserver: staging/src/k8s.io/apimachinery/pkg/util/strategicpatch/patch.go. `patch` applies one, `lists` merges
lists, `patch_types` has patch strategies and merge keys, `merge_errors` the messages.
"""

from __future__ import annotations

from kubewright.apiserver.verbs.patches.strategic_merge.patch import apply_strategic_patch

__all__ = ("apply_strategic_patch",)

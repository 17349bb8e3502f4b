"""Node lifecycle: health, taints, eviction by taint, pods of lost nodes."""

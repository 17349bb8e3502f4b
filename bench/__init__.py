"""Benchmarks: what Kubewright costs, beside a yardstick measured in the same run. Run by `make bench`."""

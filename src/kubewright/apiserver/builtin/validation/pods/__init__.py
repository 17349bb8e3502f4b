"""Validates pods and pod templates; `validation.workloads` validates the workloads.

Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go.
"""

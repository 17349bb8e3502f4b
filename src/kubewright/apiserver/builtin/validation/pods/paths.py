"""Validates relative file paths in volumes and mounts."""

from __future__ import annotations

from kubewright.apiserver.builtin.validation.fields import Errors, invalid

__all__ = ("backstep_errors", "descending_path_errors", "non_reserved_path_errors")


def backstep_errors(path: str, target: str) -> Errors:
    """validatePathNoBacksteps: no segment may be `..`."""
    return [invalid(path, target, "must not contain '..'")] if ".." in target.split("/") else []


def descending_path_errors(path: str, target: str) -> Errors:
    """validateLocalDescendingPath: relative, without `..`."""
    errors = [invalid(path, target, "must be a relative path")] if target.startswith("/") else []
    return errors + backstep_errors(path, target)


def non_reserved_path_errors(path: str, target: str) -> Errors:
    """ValidateLocalNonReservedPath: relative, and not beginning with `..`, which the kubelet reserves."""
    errors = descending_path_errors(path, target)
    if target.startswith("..") and not target.startswith("../"):
        errors.append(invalid(path, target, "must not start with '..'"))
    return errors

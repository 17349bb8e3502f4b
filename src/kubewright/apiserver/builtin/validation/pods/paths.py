"""File paths in volumes and mounts: relative where they must be, never climbing out."""

from __future__ import annotations

from kubewright.apiserver.builtin.validation.fields import Errors, invalid

__all__ = ("climbing_errors", "descending_errors", "file_path_errors")


def climbing_errors(path: str, target: str) -> Errors:
    """No step of the path may be `..`."""
    return [invalid(path, target, "must not contain '..'")] if ".." in target.split("/") else []


def descending_errors(path: str, target: str) -> Errors:
    """A relative path that does not climb."""
    errors = [invalid(path, target, "must be a relative path")] if target.startswith("/") else []
    return errors + climbing_errors(path, target)


def file_path_errors(path: str, target: str) -> Errors:
    """A relative path whose name does not start with the dots the kubelet keeps for itself."""
    errors = descending_errors(path, target)
    if target.startswith("..") and not target.startswith("../"):
        errors.append(invalid(path, target, "must not start with '..'"))
    return errors

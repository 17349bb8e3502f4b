"""The controllers of volumes and claims: binding, protection, ephemeral volumes, ResourceClaims."""

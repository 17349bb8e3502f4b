"""The ConfigMap an Application refers to: who refers to which, and a hash that changes when its data does."""

import hashlib
import json
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass

from kubewright import Context
from kubewright.k8s.core.v1 import ConfigMap

from application.api.v1alpha1.application import Application

__all__ = ("Configuration", "config_names", "find_configuration", "hash_of")


@dataclass(frozen=True)
class Configuration:
    """What is known of the configuration of one Application."""

    name: str = ""
    """Of the ConfigMap; empty if none is referred to."""
    hash: str = ""
    """Of its data; empty if it is missing."""

    @property
    def missing(self) -> bool:
        return bool(self.name) and not self.hash


def config_names(application: Application) -> Iterable[str]:
    """What the index of the cache holds of an Application: the names of the ConfigMaps it refers to."""
    return [application.spec.config_ref.name] if application.spec.config_ref else []


async def find_configuration(application: Application, ctx: Context) -> Configuration:
    """As the cache has it; its next change wakes the Application."""
    reference = application.spec.config_ref
    if reference is None:
        return Configuration()
    config = await ctx.client.find(ConfigMap, reference.name)
    return Configuration(reference.name, hash_of(config) if config is not None else "")


def hash_of(config: ConfigMap) -> str:
    """SHA-256 of the data, whatever order it comes in; labels and annotations do not count."""
    binary = {name: b64encode(value).decode() for name, value in (config.binary_data or {}).items()}
    text = json.dumps([config.data or {}, binary], sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()

"""Classes for kinds: from OpenAPI documents to Python modules, one per group-version.

    files = generate_models(documents, package="shop.models")

returns paths and their content; the caller writes them. The same documents give the same bytes.
It makes Kubewright's own built-in kinds (`package="kubewright.k8s"`) and classes for users' custom resources; the
latter import Pod, LabelSelector and so on from the built-in kinds instead of repeating them.

The documents are a stranger's: names go through `models.names`, texts through `models.python_source`, and what comes
out is checked by `models.python_tree` before anybody may write it.

A field becomes snake_case and optional unless the schema requires it. There are two exceptions, because of how Go
writes JSON: a required list or map has a default (an empty one is often sent as null), and a required time is optional
(a zero time is null).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final, final

from kubewright.api.resource import KubeObject
from kubewright.errors import SchemaError
from kubewright.generate.models.archive import archive_files
from kubewright.generate.models.names import (
    attribute_name,
    camel_case,
    component_class_name,
    module_name,
    unique_name,
)
from kubewright.generate.models.openapi import (
    Api,
    Documents,
    Kind,
    ObjectSchema,
    Property,
    TypeKind,
    ValueType,
    read_api,
)
from kubewright.generate.models.python_source import (
    Alias,
    Attribute,
    ClassDefinition,
    Imports,
    ModuleText,
    docstring,
    quoted,
    render,
)
from kubewright.generate.models.python_tree import check_module
from kubewright.k8s import documents as builtin

__all__ = ("BUILTIN_PACKAGE", "generate_models")

BUILTIN_PACKAGE: Final = "kubewright.k8s"

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
_HANDWRITTEN: Final = {
    f"{_META}.Condition": ("kubewright.api.conditions", "Condition"),
    f"{_META}.ListMeta": ("kubewright.api.metadata", "ListMeta"),
    f"{_META}.ManagedFieldsEntry": ("kubewright.api.metadata", "ManagedFieldsEntry"),
    f"{_META}.ObjectMeta": ("kubewright.api.metadata", "ObjectMeta"),
    f"{_META}.OwnerReference": ("kubewright.api.metadata", "OwnerReference"),
    f"{_META}.Status": ("kubewright.api.status", "ApiStatus"),
    f"{_META}.StatusCause": ("kubewright.api.status", "StatusCause"),
    f"{_META}.StatusDetails": ("kubewright.api.status", "StatusDetails"),
}
"""Classes of `kubewright.api` that are not generated, because every object has them."""

_SCALARS: Final = {
    TypeKind.STRING: ("", "str"),
    TypeKind.INTEGER: ("", "int"),
    TypeKind.NUMBER: ("", "float"),
    TypeKind.BOOLEAN: ("", "bool"),
    TypeKind.BYTES: ("", "bytes"),
    TypeKind.TIME: ("datetime", "datetime"),
    TypeKind.MICRO_TIME: ("kubewright.api.times", "MicroTime"),
    TypeKind.QUANTITY: ("kubewright.api.quantity", "Quantity"),
    TypeKind.INT_OR_STRING: ("kubewright.api.intorstring", "IntOrString"),
    TypeKind.ANY: ("typing", "Any"),
}

_OF_EVERY_KIND: Final = ("apiVersion", "kind", "metadata")
_KIND_NAMES: Final = frozenset(name for name in dir(KubeObject) if not name.startswith("_"))
"""Names on the base class of kinds that a field must not hide."""


def generate_models(documents: Documents, *, package: str) -> dict[str, bytes]:
    """Paths within the package and the content of each file."""
    api = read_api(documents)
    modules = _ModuleMap(api, package)
    files: dict[str, str] = {}
    for module, names in sorted(modules.modules.items()):
        group = module.partition(".")[0]
        files[f"{group}/__init__.py"] = f'"""Kinds of the {group} group, one module per version."""\n'
        files[f"{module.replace('.', '/')}.py"] = _ModuleWriter(api, modules, module, names).text()
    if package != BUILTIN_PACKAGE:
        files["__init__.py"] = '"""Kinds as classes, one module per group-version."""\n'
        return _checked(files, package)
    index = _index(api, modules)
    files["index.py"] = _index_source(index, api.version)
    by_group_version = {group_version: module for group_version, (module, _) in index.items()}
    archive = archive_files(documents, modules=by_group_version)
    return {**_checked(files, package), **{f"openapi/{name}": content for name, content in archive.items()}}


def _checked(files: Mapping[str, str], package: str) -> dict[str, bytes]:
    own = frozenset(f"{package}.{path.removesuffix('.py').replace('/', '.')}" for path in files)
    for path, text in files.items():
        check_module(path, text, modules=own)
    return {path: text.encode() for path, text in files.items()}


@final
class _ModuleMap:
    """The module of each schema's class, generated here or in the library."""

    def __init__(self, api: Api, package: str) -> None:
        self._api = api
        self._package = package
        self.builtin = package == BUILTIN_PACKAGE
        own = [name for name in (*api.schemas, *api.aliases) if self._is_generated(name)]
        self._own_modules = self._assign(own)
        self.modules: dict[str, list[str]] = defaultdict(list)
        for name in own:
            self.modules[self._own_modules[name]].append(name)
        self._classes = {name: one for names in self.modules.values() for name, one in _class_names(names)}

    def find(self, name: str) -> tuple[str, str]:
        """Module and class name to import."""
        if name in _HANDWRITTEN:
            return _HANDWRITTEN[name]
        if name in self._own_modules:
            return f"{self._package}.{self._own_modules[name]}", self._classes[name]
        if builtin.component(name) is None or name.endswith("List"):
            raise SchemaError(
                f"{name!r} is a list of a kind and has no class of its own; remove the field of that type"
            )
        return f"{BUILTIN_PACKAGE}.{builtin.module_of(name)}", name.rpartition(".")[2]

    def class_for(self, name: str) -> str:
        """The class of a schema that is generated here; no other in its module has the same name."""
        return self._classes[name]

    def module_for(self, name: str) -> str:
        """The module of a schema that is generated here; empty for any other."""
        return self._own_modules.get(name, "")

    def _is_generated(self, name: str) -> bool:
        schema = self._api.schemas.get(name)
        if name in _HANDWRITTEN or (schema is not None and _is_list_kind(schema)):
            return False
        return self.builtin or builtin.component(name) is None

    def _assign(self, names: list[str]) -> dict[str, str]:
        """`cert-manager.v1` becomes `cert_manager.v1`; two groups with the same first word keep their whole name."""
        prefixes: dict[str, set[str]] = defaultdict(set)
        for name in names:
            prefixes[builtin.module_of(name)].add(name.rpartition(".")[0])
        modules = {}
        for name in names:
            module = builtin.module_of(name)
            group, _, version = module.rpartition(".")
            whole = name.split(".")[:-2]
            crowded = len(prefixes[module]) > 1 and module != "meta.v1"
            modules[name] = f"{module_name('.'.join(reversed(whole)) if crowded else group)}.{module_name(version)}"
        return modules


def _class_names(names: list[str]) -> Iterator[tuple[str, str]]:
    """The class of each schema of a module; those that need no change come first and keep their names."""
    taken: set[str] = set()
    for name in sorted(names, key=lambda name: (component_class_name(name) != name.rpartition(".")[2], name)):
        chosen = unique_name(component_class_name(name), taken)
        taken.add(chosen)
        yield name, chosen


def _is_list_kind(schema: ObjectSchema) -> bool:
    """Whether it is the list of a kind; one generic class serves for all."""
    metadata = schema.find("metadata")
    return (
        schema.name.endswith("List")
        and schema.find("items") is not None
        and metadata is not None
        and (metadata.type.target == f"{_META}.ListMeta")
    )


@final
class _ModuleWriter:
    """Writes one module."""

    def __init__(self, api: Api, modules: _ModuleMap, module: str, names: list[str]) -> None:
        self._api = api
        self._modules = modules
        self._module = module
        self._names = sorted(names, key=modules.class_for)
        self._imports = Imports(map(modules.class_for, names))

    def text(self) -> str:
        # Parts first: the class statement of a kind refers to the class of its status.
        names = [name for name in self._names if name in self._api.schemas]
        parts = [self._part(self._api.schemas[name]) for name in names if name not in self._api.kinds]
        kinds = [self._kind(self._api.kinds[name]) for name in names if name in self._api.kinds]
        aliases = [self._alias(name) for name in self._names if name in self._api.aliases]
        exports = [alias.name for alias in aliases] + [one.name for one in (*parts, *kinds)]
        if self._module == "meta.v1":
            exports += [
                self._imports.use(module, name, wanted=full.rpartition(".")[2])
                for full, (module, name) in _HANDWRITTEN.items()
            ]
        return render(
            ModuleText(
                doc=self._head(),
                imports=self._imports,
                aliases=tuple(aliases),
                classes=(*parts, *kinds),
                exports=tuple(sorted(exports)),
            )
        )

    def _head(self) -> str:
        source = f" from Kubernetes {self._api.version}" if self._api.version else ""
        kinds = [self._api.kinds[name].gvk.api_version for name in self._names if name in self._api.kinds]
        title = f"The kinds of {kinds[0]}." if kinds else f"What kinds share: {self._module}."
        return f"{title}\n\nGenerated by `kubewright generate models`{source}; do not edit."

    def _alias(self, name: str) -> Alias:
        return Alias(
            name=self._modules.class_for(name),
            annotation=self._imports.use("typing", "TypeAlias"),
            type=self._imports.use("typing", "Any"),
            doc=self._api.aliases[name],
        )

    def _part(self, schema: ObjectSchema) -> ClassDefinition:
        return ClassDefinition(
            name=self._modules.class_for(schema.name),
            base=self._imports.use("kubewright.api.model", "Model"),
            doc=schema.description or f"Part of {self._module}.",
            attributes=tuple(self._attributes(schema)),
        )

    def _kind(self, kind: Kind) -> ClassDefinition:
        schema = self._api.schemas[kind.schema]
        base = self._resource_base(schema)
        skipped = (*_OF_EVERY_KIND, "spec", "status") if base else _OF_EVERY_KIND
        name = self._modules.class_for(schema.name)
        return ClassDefinition(
            name=name,
            base=base or self._imports.use("kubewright.api.resource", "KubeObject"),
            keywords=tuple(_class_keywords(kind, name)),
            doc=schema.description or f"The {kind.gvk.kind} kind.",
            attributes=tuple(self._attributes(schema, skipped=skipped, of_kind=True)),
        )

    def _resource_base(self, schema: ObjectSchema) -> str:
        """`Resource[Spec, Status]` for a custom resource that has both and can be made without a status."""
        spec, status = schema.find("spec"), schema.find("status")
        if self._modules.builtin or spec is None or status is None:
            return ""
        if {spec.type.kind, status.type.kind} != {TypeKind.OBJECT} or self._needs_arguments(status.type):
            return ""
        resource = self._imports.use("kubewright.api.resource", "Resource")
        return f"{resource}[{self._annotation(spec.type)}, {self._annotation(status.type)}]"

    def _attributes(
        self, schema: ObjectSchema, *, skipped: tuple[str, ...] = (), of_kind: bool = False
    ) -> Iterator[Attribute]:
        taken: set[str] = set()
        attributes = []
        for one in schema.properties:
            if one.name not in skipped:
                name = attribute_name(one.name, taken=taken, reserved=_KIND_NAMES if of_kind else ())
                taken.add(name)
                attributes.append(self._attribute(one, name, of_kind=of_kind))
        # Required attributes first.
        yield from sorted(attributes, key=lambda attribute: not attribute.required)

    def _attribute(self, one: Property, name: str, *, of_kind: bool) -> Attribute:
        annotation = self._annotation(one.type)
        options: list[str] = []
        if of_kind and one.name in ("spec", "status") and one.type.kind is TypeKind.OBJECT:
            needs_arguments = self._needs_arguments(one.type)
            if not needs_arguments:
                options.append(f"default_factory={annotation}")
            elif one.name == "status":
                annotation, options = f"{annotation} | None", ["default=None"]
        elif _is_optional(one):
            annotation = annotation if one.type.kind is TypeKind.ANY else f"{annotation} | None"
            options.append("default=None")
        elif one.type.kind in (TypeKind.LIST, TypeKind.MAP):
            options.append(f"default_factory={'list' if one.type.kind is TypeKind.LIST else 'dict'}")
        required = not options
        if camel_case(name) != one.name:
            options.append(f"name={quoted(one.name)}")
        return Attribute(
            name=name,
            annotation=annotation,
            default=self._default(options),
            required=required,
            doc=_description(one),
        )

    def _default(self, options: list[str]) -> str:
        if options in ([], ["default=None"]):
            return "None" if options else ""
        return f"{self._imports.use('kubewright.api.model', 'field')}({', '.join(options)})"

    def _needs_arguments(self, value_type: ValueType) -> bool:
        schema = self._api.schemas.get(value_type.target)
        if value_type.target in _HANDWRITTEN or schema is None:
            return True
        collections = (TypeKind.LIST, TypeKind.MAP)
        return any(not _is_optional(one) and one.type.kind not in collections for one in schema.properties)

    def _annotation(self, value_type: ValueType) -> str:
        if value_type.kind in _SCALARS:
            module, name = _SCALARS[value_type.kind]
            written = self._imports.use(module, name) if module else name
        elif value_type.item is not None:
            item = self._annotation(value_type.item)
            written = f"list[{item}]" if value_type.kind is TypeKind.LIST else f"dict[str, {item}]"
        else:
            module, name = self._modules.find(value_type.target)
            own = self._modules.module_for(value_type.target) == self._module
            written = name if own else self._imports.use(module, name)
        return f"{written} | None" if value_type.nullable else written


def _is_optional(one: Property) -> bool:
    return (
        not one.required
        or one.nullable
        or one.type.kind in (TypeKind.TIME, TypeKind.MICRO_TIME, TypeKind.ANY, TypeKind.ALIAS)
    )


def _description(one: Property) -> str:
    """The description, and the allowed values unless it lists them itself."""
    values = [str(value) for value in one.enum]
    if all(value in one.description for value in values):
        return one.description
    return f"{one.description}\n\nOne of: {', '.join(f'`{value}`' for value in values)}.".strip()


def _class_keywords(kind: Kind, class_name: str) -> Iterator[tuple[str, str]]:
    """The keywords of the class statement, without those that equal the default."""
    if kind.gvk.group:
        yield "group", quoted(kind.gvk.group)
    yield "version", quoted(kind.gvk.version)
    if kind.gvk.kind != class_name:
        yield "kind", quoted(kind.gvk.kind)
    if kind.plural:
        yield "plural", quoted(kind.plural)
    if kind.singular and kind.singular != kind.gvk.kind.lower():
        yield "singular", quoted(kind.singular)
    if not kind.namespaced:
        yield "scope", quoted("Cluster")
    for name, values in (("short_names", kind.short_names), ("categories", kind.categories), ("scale", kind.scale)):
        if values:
            yield name, f"({', '.join(quoted(value) for value in values)}{',' if len(values) == 1 else ''})"
    if "status" in kind.subresources:
        yield "status", "True"
    if not kind.storage:
        yield "storage", "False"
    if kind.deprecated:
        yield "deprecated", "True" if kind.deprecated is True else quoted(kind.deprecated)


def _index(api: Api, modules: _ModuleMap) -> Mapping[str, tuple[str, tuple[str, ...]]]:
    """Group-version to module and kinds; the core group first, then by name."""
    found: dict[str, tuple[str, list[str]]] = {}
    for name, kind in sorted(api.kinds.items(), key=lambda item: item[1].gvk):
        found.setdefault(kind.gvk.api_version, (modules.module_for(name), []))[1].append(kind.gvk.kind)
    return {group_version: (module, tuple(kinds)) for group_version, (module, kinds) in found.items()}


def _index_source(index: Mapping[str, tuple[str, tuple[str, ...]]], version: str) -> str:
    lines = [
        *docstring(
            "Which built-in kind is in which module. Plain data, so that nothing is imported to look a kind up.\n\n"
            f"Generated by `kubewright generate models` from Kubernetes {version}; do not edit.",
            "",
        ),
        "",
        "from __future__ import annotations",
        "",
        "from typing import Final",
        "",
        '__all__ = ("MODULES", "SERVER_VERSION")',
        "",
        f"SERVER_VERSION: Final = {quoted(version)}",
        '"""The kube-apiserver whose documents these are."""',
        "",
        "MODULES: Final[dict[str, tuple[str, tuple[str, ...]]]] = {",
    ]
    for group_version, (module, kinds) in index.items():
        lines += [f"    {quoted(group_version)}: (", f"        {quoted(module)},"]
        if len(kinds) == 1:
            lines.append(f"        ({quoted(kinds[0])},),")
        else:
            lines += ["        (", *(f"            {quoted(kind)}," for kind in kinds), "        ),"]
        lines.append("    ),")
    lines += ["}", '"""Group-version to module below `kubewright.k8s`, and the names of its kinds."""', ""]
    return "\n".join(lines)

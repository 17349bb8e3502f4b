"""Image references, as far as an operator has to understand them: registry/repository:tag@digest."""

__all__ = ("repository_of",)


def repository_of(image: str) -> str:
    """The repository part: without registry, tag and digest.

    The first part is a registry if it could not be a repository's: it has a dot or a port, or is localhost.
    """
    name, _, _ = image.partition("@")
    first, slash, rest = name.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        name = rest
    folder, slash, last = name.rpartition("/")
    return f"{folder}{slash}{last.partition(':')[0]}"

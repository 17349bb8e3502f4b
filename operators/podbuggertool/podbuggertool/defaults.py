"""What a tool is where its author said nothing.

Pure, and used twice: by the webhook, which stores it, and by the reconciler, which must also work where no webhook was.
"""

from podbuggertool.api.v1alpha1.podbuggertool import PodBuggerTool


def set_defaults(tool: PodBuggerTool) -> None:
    """Fill in a tool in place. The container's name is not stored: it changes with what the container is."""
    spec = tool.spec
    if spec.command is None:
        spec.command = ["sh"]
    if spec.stdin is None:
        spec.stdin = True
    if spec.tty is None:
        spec.tty = spec.stdin
    if spec.image_pull_policy is None:
        spec.image_pull_policy = "IfNotPresent"

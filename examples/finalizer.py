"""Finalizer: clean up what Kubernetes cannot, before an object goes away.

A Bucket is a folder on the disk of the operator, which stands for storage in some cloud: garbage collection does not
know of it.

    kubewright run --embedded examples/finalizer.py         # BUCKETS=/some/folder to see it elsewhere

    echo '
    apiVersion: storage.example.io/v1
    kind: Bucket
    metadata: {name: photos, namespace: default}
    spec: {retain: false}
    ' | kubectl apply -f -

Look at `kubectl get bucket photos -o yaml`: a class with a `finalize` method brings a finalizer, which is on the server
before `reconcile` runs for the first time, and gone only after `finalize` has returned. `kubectl delete bucket photos`
waits for that.

The trap: finding what to clean up through the status. A reconcile may have made the folder and failed before it could
say so; hence its place follows from the object alone. And clean-up may run twice, so that nothing is left is a success.
"""

import os
import shutil
import tempfile
from pathlib import Path

from kubewright import Context, Resource, Spec, Status, controller


class BucketSpec(Spec):
    retain: bool = False
    """Keep the folder when the object is deleted."""


class BucketStatus(Status):
    path: str = ""


class Bucket(Resource[BucketSpec, BucketStatus], group="storage.example.io", version="v1"):
    """A folder that lives as long as this object."""


def folder_of(bucket: Bucket) -> Path:
    root = Path(os.environ.get("BUCKETS") or Path(tempfile.gettempdir(), "buckets"))
    # The uid, too: an object of the same name made later is another one, with a folder of its own.
    return root / f"{bucket.metadata.namespace}.{bucket.metadata.name}.{bucket.metadata.uid}"


@controller(Bucket)
class Buckets:
    """Not async, since files are slow: plain methods run in threads of the controller and block nobody else."""

    def reconcile(self, bucket: Bucket, ctx: Context) -> None:
        folder = folder_of(bucket)
        folder.mkdir(parents=True, exist_ok=True)
        bucket.status.path = str(folder)
        ctx.condition("Ready", True, reason="FolderMade")

    def finalize(self, bucket: Bucket, ctx: Context) -> None:
        if not bucket.spec.retain and folder_of(bucket).exists():
            shutil.rmtree(folder_of(bucket))
            ctx.log.info("removed", path=str(folder_of(bucket)))

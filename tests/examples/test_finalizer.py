"""finalizer: what lies outside of the cluster goes before the object does."""

from __future__ import annotations

from pathlib import Path

import pytest
from examples.finalizer import Bucket, BucketSpec
from tests.examples.conftest import ApplyManifest, RunExample

from kubewright import Client
from kubewright.testing import gone, until


@pytest.fixture(autouse=True)
def buckets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the folders are."""
    monkeypatch.setenv("BUCKETS", str(tmp_path))
    return tmp_path


def folders(root: Path) -> list[str]:
    return [str(path) for path in root.iterdir()]


def put_a_file_into(folder: str) -> None:
    Path(folder, "holiday.jpg").touch()


def remove(folder: str) -> None:
    Path(folder).rmdir()


async def test_a_folder_lives_as_long_as_its_object(
    run_example: RunExample, apply_manifest: ApplyManifest, client: Client, buckets: Path
) -> None:
    async with run_example("finalizer"):
        await apply_manifest("finalizer")
        bucket = await until(client, Bucket, "photos", lambda it: it.status.path)
        assert folders(buckets) == [bucket.status.path]
        put_a_file_into(bucket.status.path)

        await client.delete(bucket)
        await gone(client, Bucket, "photos")
    assert folders(buckets) == []


async def test_an_object_deleted_while_nobody_works_waits_for_its_clean_up(
    run_example: RunExample, client: Client, namespace: str, buckets: Path
) -> None:
    async with run_example("finalizer"):
        await client.create(Bucket.named("films", namespace))
        bucket = await until(client, Bucket, "films", lambda it: it.status.path, namespace=namespace)
    await client.delete(bucket)
    waiting = await client.get(Bucket, "films", namespace=namespace)
    assert waiting.metadata.finalizers == ["storage.example.io/bucket"]
    assert folders(buckets)

    async with run_example("finalizer"):
        await gone(client, Bucket, "films", namespace=namespace)
    assert folders(buckets) == []


async def test_a_folder_that_is_gone_already_keeps_nobody_waiting(
    run_example: RunExample, client: Client, namespace: str
) -> None:
    async with run_example("finalizer"):
        await client.create(Bucket.named("films", namespace))
        bucket = await until(client, Bucket, "films", lambda it: it.status.path, namespace=namespace)
        remove(bucket.status.path)
        await client.delete(bucket)
        await gone(client, Bucket, "films", namespace=namespace)


async def test_what_is_to_be_retained_stays(
    run_example: RunExample, client: Client, namespace: str, buckets: Path
) -> None:
    async with run_example("finalizer"):
        await client.create(Bucket.named("films", namespace, spec=BucketSpec(retain=True)))
        bucket = await until(client, Bucket, "films", lambda it: it.status.path, namespace=namespace)
        await client.delete(bucket)
        await gone(client, Bucket, "films", namespace=namespace)
    assert folders(buckets) == [bucket.status.path]

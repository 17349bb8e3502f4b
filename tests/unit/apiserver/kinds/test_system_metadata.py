"""The fields of metadata that only the server sets."""

from __future__ import annotations

import uuid

from kubewright.apiserver.kinds.system_metadata import generated_name, new_uid


def test_a_uid_is_a_random_uuid_in_its_usual_form() -> None:
    uids = {new_uid() for _ in range(1_000)}

    assert len(uids) == 1_000
    for uid in uids:
        parsed = uuid.UUID(uid)
        assert (str(parsed), parsed.version, parsed.variant) == (uid, 4, uuid.RFC_4122)


def test_a_generated_name_keeps_as_much_of_its_base_as_fits() -> None:
    assert generated_name("web-").startswith("web-")
    assert len(generated_name("a" * 70)) == 63

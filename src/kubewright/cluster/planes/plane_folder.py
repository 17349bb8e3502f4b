"""The folders of a local control plane, the lock on them, and the kubeconfigs in them.

One folder holds the files of this run (kubeconfigs, certificates, logs), another the files that survive it (objects,
CAs); they are the same unless the caller gives a data folder. `real` and `embedded` each have a `PlaneFolder`.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import urllib.parse
from pathlib import Path
from typing import Final, final

from kubewright._base.certificates import KeyPair
from kubewright._base.files import private_folder
from kubewright.client.config import kubeconfig
from kubewright.cluster.pki.files import Pki
from kubewright.cluster.processes.locks import FileLock
from kubewright.errors import ClusterError, ConfigError

__all__ = ("ADMIN", "ADMIN_GROUP", "PlaneFolder")

ADMIN: Final = "admin"
ADMIN_GROUP: Final = "system:masters"
_NAME: Final = "kubewright"


@final
class PlaneFolder:
    """The folders of one control plane; `open` creates and locks them, `close` unlocks and removes temporary ones."""

    folder: Path
    """The files of this run; removed at the end unless the caller chose the folder."""

    def __init__(self, *, folder: Path | None, data: Path | None) -> None:
        self._requested = folder
        self.data = None if data is None else data.absolute()
        """The data folder, which survives; None if there is none."""
        self.temporary: Path | None = None
        """The folder that `close` removes."""
        self._lock: FileLock | None = None

    @property
    def is_given(self) -> bool:
        """Whether the caller chose the folder, and so wants to read its files afterwards."""
        return self._requested is not None

    @property
    def persistent(self) -> Path:
        """The data folder if there is one, else the folder of this run."""
        return self.data if self.data is not None else self.folder

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of the administrator."""
        return self.folder / "kubeconfig"

    def open(self, *, logs: bool = False) -> None:
        """Create the folders, close them to other users, and lock them."""
        if self._requested is None:
            self.temporary = Path(tempfile.mkdtemp(prefix="kubewright-"))
        self.folder = (self._requested or self.temporary or Path()).absolute()
        try:
            for folder in (self.folder, self.persistent):
                private_folder(folder)
            if logs:
                private_folder(self.folder / "logs")
        except ConfigError as error:
            raise ClusterError(str(error)) from error
        except OSError as error:
            raise ClusterError(f"The folder of the cluster cannot be made ({error}); choose another.") from error
        lock = FileLock(self.persistent / ".lock")
        if not lock.try_acquire():
            raise ClusterError(
                f"The folder {self.persistent} is in use by another cluster; stop that one or choose another."
            )
        self._lock = lock

    async def close(self) -> None:
        """Remove the temporary folder and release the lock; closing twice is fine."""
        if self.temporary is not None:
            await asyncio.to_thread(shutil.rmtree, self.temporary, ignore_errors=True)
        if self._lock is not None:
            self._lock.release()

    def prepare_pki(self) -> Pki:
        """The certificates: CAs from the data folder if it has them, else new ones."""
        return Pki.prepare(persistent=self.persistent / "pki", temporary=self.folder / "pki")

    def write_admin_kubeconfig(self, pki: Pki, *, server: str) -> KeyPair:
        """Write the kubeconfig of the administrator and return its key pair."""
        pair = pki.authority.client(ADMIN, groups=(ADMIN_GROUP,))
        self.write_kubeconfig("kubeconfig", ADMIN, pair, ca=pki.ca, server=server)
        return pair

    def write_user_kubeconfig(self, pki: Pki, name: str, groups: tuple[str, ...], *, server: str) -> Path:
        """Write the kubeconfig of a user with a new client certificate; its path."""
        pair = pki.authority.client(name, groups=groups)
        file = f"users/{urllib.parse.quote(name, safe='')}"
        return self.write_kubeconfig(file, name, pair, ca=pki.ca, server=server)

    def write_kubeconfig(self, file: str, user: str, pair: KeyPair, *, ca: bytes, server: str) -> Path:
        """Write a kubeconfig below the folder; its path."""
        path = self.folder / file
        tree = kubeconfig.kubeconfig_tree(
            name=_NAME if user == ADMIN else f"{user}@{_NAME}",
            server=server,
            ca_data=ca,
            user=user,
            client_certificate=pair.certificate,
            client_key=pair.key,
        )
        kubeconfig.write(path, tree)
        return path

"""Home: the folders of a local control plane, who else uses them, and the kubeconfigs in them.

One folder holds what belongs to this run (kubeconfigs, certificates, logs), another what is to survive it (objects,
CAs); they are the same unless a data folder was given. `real` and `embedded` each have a home.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import urllib.parse
from pathlib import Path
from typing import Final, final

from kubewright.client.config import kubeconfig
from kubewright.cluster.pki.certificates import KeyPair
from kubewright.cluster.pki.files import Pki
from kubewright.cluster.processes.locks import FileLock
from kubewright.errors import ClusterError

__all__ = ("ADMIN", "ADMIN_GROUP", "Home")

ADMIN: Final = "admin"
ADMIN_GROUP: Final = "system:masters"
_NAME: Final = "kubewright"


@final
class Home:
    """Folders that are made by `enter` and left by `leave`."""

    folder: Path
    """What belongs to this run; removed at the end unless it was given."""

    def __init__(self, *, folder: Path | None, data: Path | None) -> None:
        self._asked = folder
        self.data = None if data is None else data.absolute()
        """What survives, if anything does."""
        self.disposable: Path | None = None
        """What is removed at the end."""
        self._lock: FileLock | None = None

    @property
    def given(self) -> bool:
        """Whether somebody chose the folder, and so wants to look into it afterwards."""
        return self._asked is not None

    @property
    def kept(self) -> Path:
        """Where to put what is to survive, if there is such a place."""
        return self.data if self.data is not None else self.folder

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of the administrator."""
        return self.folder / "kubeconfig"

    def enter(self, *, logs: bool = False) -> None:
        """Make the folders and lock them."""
        if self._asked is None:
            self.disposable = Path(tempfile.mkdtemp(prefix="kubewright-"))
        self.folder = (self._asked or self.disposable or Path()).absolute()
        try:
            for folder in (self.folder / "logs" if logs else self.folder, self.kept):
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise ClusterError(f"The folder of the cluster cannot be made ({error}); choose another.") from error
        lock = FileLock(self.kept / ".lock")
        if not lock.take():
            raise ClusterError(f"The folder {self.kept} is in use by another cluster; stop that one or choose another.")
        self._lock = lock

    async def leave(self) -> None:
        """Remove what is temporary and let go of the rest; leaving twice is fine."""
        if self.disposable is not None:
            await asyncio.to_thread(shutil.rmtree, self.disposable, ignore_errors=True)
        if self._lock is not None:
            self._lock.release()

    def prepare_pki(self) -> Pki:
        """The certificates: those that were kept, else new ones."""
        return Pki.prepare(kept=self.kept / "pki", fresh=self.folder / "pki")

    def write_admin(self, pki: Pki, *, server: str) -> KeyPair:
        """Write the kubeconfig of one who may do everything."""
        pair = pki.authority.client(ADMIN, groups=(ADMIN_GROUP,))
        self.write_kubeconfig("kubeconfig", ADMIN, pair, ca=pki.ca, server=server)
        return pair

    def write_user(self, pki: Pki, name: str, groups: tuple[str, ...], *, server: str) -> Path:
        """Write the kubeconfig of somebody known by a new client certificate."""
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

"""libvirt's hook: the script that it runs, and putting that where libvirt looks for it.

``qemu.sh`` is the script as packages ship it, with its settings at their defaults.
"""

from vmtune.hook.install import Installed, Removed, install, uninstall
from vmtune.hook.script import HookSettings, Script

__all__ = ["HookSettings", "Installed", "Removed", "Script", "install", "uninstall"]

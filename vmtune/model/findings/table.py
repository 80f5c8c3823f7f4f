"""Every finding of preflight and host diagnostics: code, severity, reason and remedy."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from vmtune import units
from vmtune.model.findings.disk_rows import DISK_ROWS
from vmtune.model.findings.doctor_rows import DOCTOR_ROWS
from vmtune.model.findings.hardware_rows import HARDWARE_ROWS
from vmtune.model.findings.kinds import FindingKind, Lifted, Severity, blocker, warning
from vmtune.model.findings.pack_rows import PACK_ROWS
from vmtune.model.findings.pool_rows import POOL_ROWS
from vmtune.model.findings.ring_rows import RING_ROWS
from vmtune.model.tunables.rows.storage import CHOOSES_DISKS
from vmtune.units import Unit

__all__ = ["FINDINGS", "Finding", "FindingKind", "Lifted", "Severity"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found.

    :param tunable: the tunable concerned, empty where it is the VM or a host.
    :param evidence: the observed values by name; host diagnostics add ``where``, their source.
    """

    code: str
    tunable: str = ""
    evidence: Mapping[str, str | int] = field(default_factory=dict)

    @property
    def kind(self) -> FindingKind:
        """The row of the table that this finding is an instance of."""
        return FINDINGS[self.code]

    @property
    def severity(self) -> Severity:
        """Blocker, warning or info."""
        return self.kind.severity

    @property
    def lifted(self) -> Lifted:
        """What an override of it does. What says which disks are copied is never left out: the VM
        would go without them."""
        lifted = self.kind.lifted
        kept = lifted is Lifted.LEAVES_OUT and self.tunable in CHOOSES_DISKS
        return Lifted.NEVER if kept else lifted

    def stops(self, overrides: Collection[str] = ()) -> bool:
        """Whether it stops the work.

        :param overrides: codes that are overridden.
        """
        return self.severity is Severity.BLOCKER and not (
            self.overridable and self.code in overrides
        )

    @property
    def overridable(self) -> bool:
        """Whether it is a blocker that an operator can override."""
        return self.severity is Severity.BLOCKER and self.lifted is not Lifted.NEVER

    @property
    def leaves_out(self) -> bool:
        """Whether its tunable is not set."""
        return self.severity is Severity.BLOCKER and self.lifted is not Lifted.GOES_ON

    @property
    def message(self) -> str:
        """Why it matters, with the evidence filled in."""
        return self.kind.why.format_map(self._shown())

    @property
    def remedy(self) -> str:
        """What to do about it, with the evidence filled in."""
        return self.kind.remedy.format_map(self._shown())

    @property
    def field(self) -> str:
        """The tunable of the profile that it concerns, or else the VM."""
        if "step" in self.evidence:
            return f"steps.{self.evidence['step']}"
        return f"values.{self.tunable}" if self.tunable else "vm"

    def _shown(self) -> dict[str, str]:
        """The evidence as people read it; what ends in ``_bytes`` with its unit, and steps
        counted from 1."""
        shown = {"step": str(int(self.evidence["step"]) + 1)} if "step" in self.evidence else {}
        return {
            name: units.render(value, Unit.BYTES)
            if name.endswith("_bytes") and isinstance(value, int)
            else str(value)
            for name, value in self.evidence.items()
        } | shown


_TABLE = (
    blocker(
        "managed_elsewhere",
        "{manager} manages this VM and would not know where it is after a migration by others",
        "migrate it with `{command}`, which vmtune helps; or override managed_elsewhere if "
        "{manager} manages it no more",
    ),
    blocker(
        "not_offered_by_qemu",
        "QEMU {version} on the {side} does not support it; {since}",
        "unset it, or use a QEMU that supports it",
    ),
    blocker(
        "needs_newer_libvirt",
        "libvirt {version} does not support it; both sides need libvirt {since}",
        "unset it, or upgrade libvirt on both hosts",
    ),
    blocker(
        "compression_not_built_in",
        "QEMU on the {side} was built without {method}; it has {methods}",
        "choose one of {methods}",
    ),
    blocker(
        "compression_unknown_to_libvirt",
        "libvirt knows the compressions zlib and zstd alone, and refuses {method}",
        "choose zstd, or migrate without libvirt",
    ),
    blocker(
        "machine_differs",
        "the QEMU that waits on the destination is a {destination}, and the VM a {source}",
        "start it with -machine {source}",
    ),
    blocker(
        "postcopy_excludes_multifd",
        "QEMU {version} on the {side} refuses post-copy together with multifd",
        "unset postcopy or multifd, or use QEMU 10.1 or newer on both sides",
    ),
    blocker(
        "dirty_limit_needs_ring",
        "the VM tracks dirty pages with {tracking}; dirty_limit needs KVM with a dirty ring",
        "set dirty_ring_size_entries and restart the VM, or unset dirty_limit",
    ),
    blocker(
        "dirty_limit_not_alone",
        "{conflict} is on in QEMU, and it excludes {wanted}",
        "set {conflict} to off in the profile",
    ),
    blocker(
        "xbzrle_cache_too_large",
        "a cache of {cache_bytes} is more than the guest's {memory_bytes} can fill, and QEMU may "
        "not get it",
        "set at most {most_bytes}",
    ),
    blocker(
        "tls_creds_unknown",
        "QEMU on the {side} has no TLS credentials object {name}",
        "start it with -object tls-creds-x509,id={name},... or name another one",
    ),
    blocker(
        "tls_certificates_missing",
        "the {side}'s libvirt has no certificate for migrations in {folder}",
        "put ca-cert.pem, server-cert.pem and server-key.pem there (and client-cert.pem, "
        "client-key.pem where clients are verified), or unset tls",
    ),
    warning(
        "tls_slower_than_guest",
        "TLS sent at most {sends_bytes} a second between these hosts by {channels} channel(s) "
        "({records} recorded), and the guest dirtied {dirties_bytes} a second when it last "
        "migrated: the migration may not end",
        "set multifd with more channels, which encrypt in parallel; or auto_converge, a higher "
        "downtime_limit_ms, or post-copy",
    ),
    blocker(
        "thread_pool_out_of_order",
        "the minimum would be {least} and the maximum {most}",
        "set {missing} as well",
    ),
    blocker(
        "throttle_out_of_order",
        "the first throttle step would be {first} % and the maximum {most} %",
        "set {missing} as well",
    ),
    blocker(
        "no_such_part",
        "it needs {part}, and the VM has none",
        "unset it, or give the VM {part} and restart it",
    ),
    blocker(
        "not_whole_mib",
        "libvirt takes this value in MiB/s, and {value} bytes/s are not whole MiB/s",
        "use {whole}",
    ),
    blocker(
        "set_by_libvirt",
        "libvirt {how}; a profile cannot set it",
        "unset it",
    ),
    blocker(
        "network_address_invalid",
        "it would be {value}, which is not an address",
        "change {name} in the profile, or for the destination with `vmtune host change`",
    ),
    blocker(
        "disks_uri_needs_libvirt",
        "a QEMU without libvirt copies no disks",
        "unset it",
    ),
    blocker(
        "migrate_uri_missing",
        "{address} is every address of the destination, and nothing says which one to connect to",
        "set migrate_uri as well",
    ),
    blocker(
        "tls_creds_missing",
        "a QEMU without libvirt needs the id of its TLS credentials object",
        "set tls_creds",
    ),
    blocker(
        "destination_needs_command_line",
        "under libvirt the destination QEMU accepts this only as a -global argument, which marks "
        "the guest as tainted",
        "allow it with the setting destination_command_line, or unset it",
    ),
    blocker(
        "boot_needs_owner",
        "libvirt did not start this QEMU, so vmtune has no configuration to change",
        "start QEMU with {option}",
    ),
    blocker(
        "host_value_differs",
        "the {side}'s {name} is {value}, not {wanted}; vmtune has no permission to change hosts",
        "run: {command}",
    ),
    blocker(
        "locked_memory_differs",
        "the locked-memory limit of QEMU is {value_bytes}, not {wanted_bytes}",
        "add <memoryBacking><locked/></memoryBacking> to the VM's XML and restart it. It keeps the "
        "guest in RAM: if that runs out, the host ends processes. A memtune hard_limit ends the "
        "guest itself when QEMU needs more",
    ),
    warning(
        "host_changes",
        "{name} changes from {value} to {wanted} for all VMs of the host, now and after a reboot",
        "`vmtune revert` restores it, as far as running VMs do not need it",
    ),
    blocker(
        "migration_active",
        "a migration of this VM is active: QEMU would crash or refuse",
        "wait until it ends, or abort it",
    ),
    blocker(
        "vm_not_running",
        "the VM is {state}",
        "start it first",
    ),
    blocker(
        "vm_cannot_migrate",
        "QEMU reports: {reason}",
        "remove what blocks the migration",
    ),
    blocker(
        "vm_on_destination",
        "the destination already has a running VM of this name or UUID",
        "remove it there, or choose another destination",
    ),
    blocker(
        "libvirt_too_old_for_qemu",
        "libvirt {libvirt} gives QEMU's command migrate an argument that QEMU {qemu} refuses, so "
        "that no migration begins",
        "upgrade libvirt on the source ({works} was seen to work), or run the VM with an older "
        "QEMU",
    ),
    blocker(
        "no_incoming_qemu",
        "no QEMU on the destination waits for the incoming migration of this VM",
        "start one there with the same devices and -incoming defer",
    ),
    blocker(
        "host_in_maintenance",
        "{host} is in maintenance, and is to get no VMs",
        "choose another destination, or end its maintenance",
    ),
    blocker(
        "no_peer_uri",
        "the destination has no peer URI, by which the source reaches its libvirt",
        "set peer_uri of the host, such as qemu+tls://{host}/system",
    ),
    blocker(
        "locked_memory_too_low",
        "zero-copy needs {needed_bytes} of lockable memory; the limit of QEMU is {limit_bytes} and "
        "cannot be raised",
        "run libvirtd with CAP_SYS_RESOURCE, or unset zero_copy_send. <memoryBacking><locked/> in "
        "the VM's XML raises the limit too, and keeps the guest in RAM: if that runs out, the host "
        "ends processes. A memtune hard_limit ends the guest itself when QEMU needs more",
    ),
    warning(
        "locked_memory_shared",
        "other QEMUs of the same user have pinned {others_bytes}, which the kernel counts against "
        "the same limit, {limit_bytes}: zero-copy of {memory_bytes} can fail with `No buffer space "
        "available`",
        "set the locked-memory limit of this QEMU to {wanted} bytes: prlimit --pid PID "
        "--memlock={wanted}; or unset zero_copy_send",
    ),
    blocker(
        "optmem_too_low",
        "net.core.optmem_max is {value}; zero-copy fails below {least}",
        "run: sysctl -w net.core.optmem_max={wanted}",
    ),
    blocker(
        "reaper_needs_ring",
        "the VM tracks dirty pages with {tracking}; the reaper needs KVM with a dirty ring",
        "set dirty_ring_size_entries to 65536 and restart the VM, or unset {reaper}",
    ),
    blocker(
        "reaper_ring_unknown",
        "the size of the VM's dirty ring is unknown: QMP does not report it, and QEMU's process "
        "cannot be read",
        "let vmtune's user read QEMU's process in /proc, or unset {reaper}",
    ),
    blocker(
        "rings_in_use",
        "{other} is {value} in QEMU, and acts through the dirty rings as well: only one of "
        "reaper_policy, qemu_reaper_policy and dirty_limit works at a time",
        "set {other} to {off} in the profile, or unset {wanted}",
    ),
    blocker(
        "step_not_offered",
        "step {step} sets {name}, which QEMU {version} does not have; QEMU {since} and newer do",
        "remove the step, or use a newer QEMU",
    ),
    warning(
        "step_without_switch",
        "step {step} will fail: {switch} cannot be enabled here",
        "fix the blocker of {switch}, or remove the step",
    ),
    warning(
        "reaper_small_ring",
        "a ring of {entries} entries is full after {interval} where a vCPU dirties {rate}",
        "set dirty_ring_size_entries to 65536 and restart the VM",
    ),
    warning(
        "dirty_rate_being_measured",
        "another client measures this VM's dirty rate; the reaper waits until that ends, at most "
        "one minute",
        "wait until it ends, or find that client",
    ),
    warning(
        "optmem_low",
        "net.core.optmem_max is {value}; with {channels} channels zero-copy may exhaust it and "
        "fail",
        "run: sysctl -w net.core.optmem_max={wanted}",
    ),
    warning(
        "optmem_slows",
        "net.core.optmem_max is {value}; with {channels} channels QEMU uses it up, and waits each "
        "time until the network has confirmed what was sent",
        "run: sysctl -w net.core.optmem_max={wanted}",
    ),
    warning(
        "more_channels_than_cpus",
        "{channels} channels can keep as many CPUs busy; the {side} has {cpus}, shared with its "
        "guests",
        "use at most {cpus} channels, or measure that more help",
    ),
    warning(
        "monitor_taints",
        "libvirt marks a guest as tainted (custom-monitor) when its monitor is used",
        "nothing to do; avoid the route monitor where that matters",
    ),
    warning(
        "pending_restart",
        "it takes effect when the VM is shut off and started again; a reboot inside the guest "
        "is not enough",
        "shut the VM off and start it again",
    ),
    warning(
        "transient_vm",
        "the VM is transient: it has no persistent configuration to change",
        "make it persistent with virsh define, or unset the values that need a restart",
    ),
    warning(
        "fresh_destination",
        "QEMU's migration parameters are not migrated: the destination starts with defaults",
        "nothing to do; vmtune sets the values of the active application there again",
    ),
    warning(
        "postcopy_can_lose_guest",
        "during post-copy, a failure of either host or of the network loses the guest",
        "use post-copy only where a migration does not converge otherwise",
    ),
)

_ROWS = (*_TABLE, *POOL_ROWS, *RING_ROWS, *DOCTOR_ROWS, *PACK_ROWS, *HARDWARE_ROWS, *DISK_ROWS)
FINDINGS: Mapping[str, FindingKind] = MappingProxyType({kind.code: kind for kind in _ROWS})
"""Every finding by code."""
assert len(FINDINGS) == len(_ROWS), "a finding code is defined twice"

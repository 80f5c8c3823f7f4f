import { Card, CardBody, CardHeader, CardTitle } from "@patternfly/react-core";
import type { CSSProperties } from "react";
import { Link } from "react-router";
import type { Schemas } from "../../api/client";
import { Empty } from "../../components/layout/Async";
import { bytes, count, counted } from "../../components/text/format";

type Host = Schemas["HostLoadView"];

const NAMED = 48; // more hosts than that are squares without a name

/** Every host by load and state; each leads to its page. */
export function HostMap({ hosts }: { hosts: readonly Host[] }) {
  const small = hosts.length > NAMED;
  return (
    <Card isCompact isFullHeight>
      <CardHeader hasWrap actions={{ actions: <LinkToHosts /> }}>
        <CardTitle component="h2">Hosts</CardTitle>
      </CardHeader>
      <CardBody>
        {hosts.length === 0 ? (
          <Empty title="No hosts yet" action={<Link to="/hosts?do=add">Add a host</Link>} />
        ) : (
          <>
            <p>{summary(hosts)}</p>
            <ul className={`vt-map${small ? " vt-map-small" : ""}`} aria-label="Hosts by load">
              {hosts.map((host) => (
                <li key={host.name}>
                  <Tile host={host} small={small} />
                </li>
              ))}
            </ul>
          </>
        )}
      </CardBody>
    </Card>
  );
}

const LinkToHosts = () => <Link to="/hosts">All hosts</Link>;

function Tile({ host, small }: { host: Host; small: boolean }) {
  const load = { "--load": `${Math.round((loadOf(host) ?? 0) * 100)}%` } as CSSProperties;
  const text = said(host);
  return (
    <Link
      className="vt-host"
      to={`/hosts/${encodeURIComponent(host.name)}`}
      data-state={standing(host)}
      style={load}
      title={text}
      {...(small ? { "aria-label": text } : {})}
    >
      {!small && (
        <>
          <b>{host.name}</b>
          {host.state === "unreachable"
            ? "unreachable"
            : `${counted(host.vms, "VM")}${host.maintenance ? ", maint." : arrows(host)}`}
        </>
      )}
    </Link>
  );
}

/** The share of its memory that is used; null where that is not known. */
export function loadOf({ memory_bytes: all, memory_available_bytes: free }: Host): number | null {
  return all && free !== null ? Math.min(Math.max(1 - free / all, 0), 1) : null;
}

function standing({ state, maintenance }: Host): string {
  return state !== "unreachable" && maintenance ? "maintenance" : state;
}

function arrows({ outgoing, incoming }: Host): string {
  return `${outgoing ? ` ↑${outgoing}` : ""}${incoming ? ` ↓${incoming}` : ""}`;
}

function said(host: Host): string {
  const { memory_bytes: all, memory_available_bytes: free } = host;
  return [
    `${host.name}: ${host.state}`,
    ...(host.maintenance ? ["in maintenance"] : []),
    counted(host.vms, "VM"),
    ...(all && free !== null ? [`${bytes(free)} of ${bytes(all)} memory free`] : []),
    ...(host.outgoing ? [`${count(host.outgoing)} leaving`] : []),
    ...(host.incoming ? [`${count(host.incoming)} arriving`] : []),
    ...(host.findings ? [counted(host.findings, "finding")] : []),
  ].join(", ");
}

function summary(hosts: readonly Host[]): string {
  const of = (holds: (host: Host) => boolean) => hosts.filter(holds).length;
  const silent = of(({ state }) => state === "unreachable");
  const resting = of(({ maintenance }) => maintenance);
  const vms = hosts.reduce((sum, each) => sum + each.vms, 0);
  return [
    counted(hosts.length, "host"),
    counted(vms, "VM"),
    ...(silent ? [`${count(silent)} unreachable`] : []),
    ...(resting ? [`${count(resting)} in maintenance`] : []),
    "filled by the memory in use",
  ].join(" · ");
}

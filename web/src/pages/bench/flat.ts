/** Nested documents as facts: scenarios and environments as people read them. */
import { bytes, count } from "../../components/text/format";

/** "vm.memory_bytes" and 1610612736 as "vm memory" and "1.5 GiB". */
export function flat(document: unknown, path = ""): [string, string][] {
  if (Array.isArray(document)) {
    if (document.length === 0) return [];
    const plain = document.every((each) => typeof each !== "object" || each === null);
    if (plain) return [[words(path), document.map((each) => text(path, each)).join(", ")]];
    return document.flatMap((each, index) => flat(each, `${path} ${index + 1}`));
  }
  if (typeof document === "object" && document !== null) {
    return Object.entries(document).flatMap(([key, value]) =>
      flat(value, path ? `${path} ${key}` : key),
    );
  }
  if (document === "" || document === null || document === undefined) return [];
  return [[words(path), text(path, document)]];
}

const UNITS: readonly (readonly [ending: string, unit: string])[] = [
  ["_percent", " %"],
  ["_mb_per_s", " MB/s"],
  ["_ms", " ms"],
  ["_seconds", " s"],
  ["_s", " s"],
];

function words(path: string): string {
  // A kernel's setting keeps its name: "sysctl vm.max_map_count".
  if (path.startsWith("sysctls ")) return path.replace("sysctls", "sysctl");
  const said = path.replace(/(_bytes|_percent|_mb_per_s|_ms|_s)$/, "").replaceAll("_", " ");
  const begun = said.charAt(0).toUpperCase() + said.slice(1);
  return begun
    .replace(/\b(cpu|kvm|numa|qemu|vm)\b/gi, (word) => word.toUpperCase())
    .replace(/\bvcpus\b/g, "vCPUs");
}

function text(path: string, value: unknown): string {
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value !== "number") return String(value);
  if (path.endsWith("_bytes")) return bytes(value);
  if (path.endsWith("dirty_mb_per_s") && value === 0) return "as fast as it can";
  const unit = UNITS.find(([ending]) => path.endsWith(ending))?.[1] ?? "";
  return count(value) + unit;
}

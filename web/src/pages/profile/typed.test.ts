import { expect, test } from "vitest";
import { tunable } from "../../test/profiles";
import { asTyped, bySubject, changed, finds, placeOf } from "./typed";

test("values are typed as they can be read again", () => {
  const values = { multifd: true, max_bandwidth_bytes_per_s: 1124073472, tls_hostname: "b" };
  const texts = { multifd: "on", max_bandwidth_bytes_per_s: "1,072 MiB/s", tls_hostname: "b" };
  expect(asTyped({ values, texts })).toEqual({
    multifd: "on",
    max_bandwidth_bytes_per_s: "1072 MiB/s",
    tls_hostname: "b",
  });
});

test("unset is not empty", () => {
  expect(changed({ a: "1", b: "2" }, "a", undefined)).toEqual({ b: "2" });
  expect(changed({ a: "1" }, "b", "0")).toEqual({ a: "1", b: "0" });
});

const row = tunable("downtime_limit_ms", {
  title: "Downtime limit",
  why: "How long the guest may stand still.",
  qmp: { kind: "parameter", name: "downtime-limit" },
  subject: "Switchover",
});

test.each(["downtime", "DOWNTIME_LIMIT", "downtime-limit", "stand guest", "switchover limit"])(
  "%s finds the tunable by its name, its words or QEMU's name",
  (words) => expect(finds(words, row)).toBe(true),
);

test("every word has to be there", () => {
  expect(finds("downtime bandwidth", row)).toBe(false);
});

test("subjects keep the order of the table", () => {
  const rows = [tunable("a", { subject: "Two" }), tunable("b", { subject: "One" })];
  expect([...bySubject([...rows, tunable("c", { subject: "Two" })]).entries()]).toMatchObject([
    ["Two", [{ name: "a" }, { name: "c" }]],
    ["One", [{ name: "b" }]],
  ]);
});

test("a problem leads to its field", () => {
  expect(placeOf("values.downtime_limit_ms", [row])).toEqual({
    title: "Downtime limit",
    tunable: "downtime_limit_ms",
  });
  expect(placeOf("steps.1.when", [row])).toEqual({ title: "Step 2", tunable: null });
  expect(placeOf("name", [row])).toBeNull();
});

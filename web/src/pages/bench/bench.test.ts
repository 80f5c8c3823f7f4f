import { expect, test } from "vitest";
import { readChanges } from "./changes";
import { flat } from "./flat";
import { runFilter, startOfDay } from "./runFilter";
import { changed } from "./search";

test("filters are read from the address, and what is none is passed over", () => {
  const search = new URLSearchParams(
    "scenario=plain/1gbs&arm=&state=failed&state=nonsense&state=completed&since=soon&x=1",
  );
  expect(runFilter(search)).toEqual({ scenario: "plain/1gbs", state: ["completed", "failed"] });
});

test("a day begins at midnight where the reader is", () => {
  expect(startOfDay("2026-11-21")).toBe(new Date(2026, 10, 21).toISOString());
  expect(startOfDay("2026-99-99")).toBeNull();
  expect(runFilter(new URLSearchParams("since=2026-11-21")).since).toBe(startOfDay("2026-11-21"));
});

test("what is changed in the address leaves the rest, and what is empty leaves the address", () => {
  const search = new URLSearchParams("a=1&b=2&b=3");
  expect(changed(search, { b: ["4", ""], c: "5" }).toString()).toBe("a=1&b=4&c=5");
  expect(changed(search, { a: "", b: undefined }).toString()).toBe("");
  expect(search.toString()).toBe("a=1&b=2&b=3");
});

test("changes of a scenario are an object in JSON, or nothing", () => {
  expect(readChanges(" ")).toEqual({ changes: {}, problem: "" });
  expect(readChanges('{"warmup_s": 2}')).toEqual({ changes: { warmup_s: 2 }, problem: "" });
  expect(readChanges("[1]").problem).toMatch(/no object/);
  expect(readChanges("{").problem).toMatch(/Not valid JSON/);
});

test("documents become facts with units", () => {
  const document = {
    vm: { memory_bytes: 1610612736, vcpus: 2 },
    warmup_s: 15,
    zero_percent: 5,
    kvm: true,
    steps: [{ when: { after_iterations: 3 } }],
    flags: ["a", "b"],
    sysctls: { "vm.max_map_count": "65530" },
    nothing: null,
    none: [],
  };
  expect(flat(document)).toEqual([
    ["VM memory", "1.5 GiB"],
    ["VM vCPUs", "2"],
    ["Warmup", "15 s"],
    ["Zero", "5 %"],
    ["KVM", "yes"],
    ["Steps 1 when after iterations", "3"],
    ["Flags", "a, b"],
    ["sysctl vm.max_map_count", "65530"],
  ]);
});

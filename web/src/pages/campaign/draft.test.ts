import { expect, test } from "vitest";
import { asDocument, type Draft, lacking, newDraft, problemsOf, sameArms, stepOf } from "./draft";

function draft(part: Partial<Draft> = {}): Draft {
  return { ...newDraft("plain/1gbs"), name: "mine", ...part };
}

const problem = (field: string) => ({ field, code: "c", message: "m", remedy: "" });

test("a new draft is a document of the service's defaults", () => {
  expect(asDocument(draft())).toEqual({
    name: "mine",
    scenario: "plain/1gbs",
    arms: [{ name: "stock" }, { name: "tuned" }],
    blocks: 10,
    primary_metric: "total_time_ms",
    margin_percent: 5,
    warmup_runs: 1,
  });
});

test("all that was chosen is handed on", () => {
  const [stock, tuned] = newDraft().arms;
  const made = asDocument(
    draft({
      title: " How much? ",
      quick: true,
      loads: ["idle", "busy"],
      arms: [
        { ...stock, key: 0, name: "stock ", profile: "", qemu: "", testbed: "direct", values: [] },
        {
          ...tuned,
          key: 1,
          name: "tuned",
          profile: "fast",
          qemu: "new",
          testbed: "lab",
          values: [
            { tunable: "multifd", value: " on " },
            { tunable: "", value: "left over" },
          ],
        },
      ],
      seed: "7",
      reference: "dirty-ring",
    }),
  );
  expect(made).toMatchObject({
    title: "How much?",
    scenario: "plain/1gbs.quick",
    cells: [
      { name: "idle", host_load: "idle" },
      { name: "busy", host_load: "busy" },
    ],
    seed: 7,
    published: { reference: "dirty-ring" },
  });
  expect(made.arms).toEqual([
    { name: "stock" },
    { name: "tuned", profile: "fast", qemu: "new", testbed: "lab", values: { multifd: "on" } },
  ]);
});

test("the quick form of a scenario is read back from its name", () => {
  expect(newDraft("plain/1gbs.quick")).toMatchObject({ scenario: "plain/1gbs", quick: true });
});

test("what is no number is left to the service to refuse, and nothing typed to its default", () => {
  expect(asDocument(draft({ blocks: "ten", margin: "", warmUps: " 0 " }))).toMatchObject({
    blocks: "ten",
    warmup_runs: 0,
  });
  expect(asDocument(draft({ margin: "" }))).not.toHaveProperty("margin_percent");
  expect(asDocument(draft({ seed: "" }))).not.toHaveProperty("seed");
});

test("what is lacking is told with its field, before the service is asked", () => {
  expect(lacking(draft())).toEqual([]);
  const [stock, tuned] = newDraft().arms;
  if (!stock || !tuned) throw new Error("a draft has two arms");
  const values = [
    { tunable: "multifd", value: "" },
    { tunable: "multifd", value: "on" },
  ];
  const found = lacking(
    draft({
      name: " ",
      scenario: "",
      loads: [],
      arms: [
        { ...stock, name: "" },
        { ...tuned, values },
      ],
    }),
  );
  expect(found.map((each) => each.field)).toEqual([
    "name",
    "scenario",
    "cells",
    "arms.0.name",
    "arms.1.values.multifd",
    "arms.1.values.multifd",
  ]);
});

test("each problem belongs to the step on which it can be corrected", () => {
  expect(stepOf(problem("scenario.vm.memory_bytes"))).toBe("what");
  expect(stepOf(problem("arms.1.values.multifd"))).toBe("arms");
  expect(stepOf(problem("margin_percent"))).toBe("measure");
  expect(stepOf(problem("testbed"))).toBe("review");
});

test("a field has its own problems and those of its parts, not those of its namesakes", () => {
  const all = [problem("arms.1"), problem("arms.1.name"), problem("arms.10.name")];
  expect(problemsOf(all, "arms.1").map((each) => each.field)).toEqual(["arms.1", "arms.1.name"]);
});

test("arms that only differ by their names are the same", () => {
  expect(sameArms(draft())).toBe(true);
  const [stock, tuned] = newDraft().arms;
  if (!stock || !tuned) throw new Error("a draft has two arms");
  expect(sameArms(draft({ arms: [stock, { ...tuned, profile: "fast" }] }))).toBe(false);
});

test("blocks and boots have metrics of their own, and are not run small", () => {
  const load = "block/null-co-randread-4k-64-1";
  expect(newDraft(load).metric).toBe("iops");
  expect(newDraft("boot/linux-ovmf-kvm-1-512m").metric).toBe("boot_to_userspace_ms");
  const made = asDocument({ ...newDraft(load), name: "mine", quick: true });
  expect(made).toMatchObject({ scenario: load, primary_metric: "iops" });
});

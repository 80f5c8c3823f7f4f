import { expect, test } from "vitest";
import { differences, mayOf, NO_INTENT, stated, type TypedIntent, typedOf } from "./intent";

const typed = (part: Partial<TypedIntent>): TypedIntent => ({ ...NO_INTENT, ...part });

test("without a goal there is no intent, and goals go as they are typed", () => {
  expect(stated(NO_INTENT)).toBeNull();
  expect(stated(typed({ goals: { max_silence_ms: "  " } }))).toBeNull();
  expect(stated(typed({ goals: { max_silence_ms: " 500 ms ", deadline_s: "" } }))).toEqual({
    max_silence_ms: "500 ms",
  });
});

test("a slowdown allows to throttle, until somebody chooses", () => {
  expect(mayOf(NO_INTENT)).toEqual(["compress", "zero_copy"]);
  const slower = typed({ goals: { max_slowdown_percent: "20 %" } });
  expect(mayOf(slower)).toContain("throttle");
  expect(mayOf(typed({ goals: { max_slowdown_percent: "0" } }))).not.toContain("throttle");
  expect(stated(slower)).not.toHaveProperty("may");
  expect(stated({ ...slower, may: ["postcopy"] })).toMatchObject({ may: ["postcopy"] });
});

test("only goals that are named are relaxed, in their order", () => {
  const goals = { max_silence_ms: "500 ms", deadline_s: "2 min" };
  const relax = ["deadline_s", "max_slowdown_percent", "max_silence_ms"] as const;
  expect(stated(typed({ goals, otherwise: "relax", relax }))).toMatchObject({
    otherwise: "relax",
    relax: ["deadline_s", "max_silence_ms"],
  });
  expect(stated(typed({ goals, relax }))).not.toHaveProperty("relax");
});

test("what the service tells can be typed on", () => {
  const told = {
    max_silence_ms: 500,
    max_bandwidth_bytes_per_s: 100 * 2 ** 20,
    may: ["throttle"],
    otherwise: "keep-trying",
  };
  const again = typedOf(told);
  expect(again.goals).toEqual({
    max_silence_ms: "500 ms",
    max_bandwidth_bytes_per_s: "100 MiB/s",
  });
  expect(stated(again)).toMatchObject({ may: ["throttle"], otherwise: "keep-trying" });
  expect(typedOf(null)).toBe(NO_INTENT);
});

test("a nearest intent is told by what is different", () => {
  const one = { max_silence_ms: 500, deadline_s: 60, may: ["compress"] };
  expect(differences(one, { ...one, deadline_s: 95 })).toBe("within 95 s");
  expect(differences(one, { ...one, may: ["postcopy", "compress"] })).toBe("post-copy allowed");
});

import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, expect, test, vi } from "vitest";
import * as actions from "../../api/actions";
import { ApiError, type Schemas } from "../../api/client";
import { rendered } from "../../test/rendered";
import { ending, MigrationForecast } from "./MigrationForecast";

vi.mock("../../api/actions");
vi.mock("../../api/queries", () => ({
  profiles: {
    queryKey: ["profiles"],
    queryFn: () => ({ items: [{ name: "fast" }, { name: "slow" }], next: null }),
    initialPageParam: undefined,
    getNextPageParam: () => null,
  },
}));

type Candidate = Schemas["CandidateView"];

const forecastVm = vi.mocked(actions.forecastVm);
const range = (low: number, likely: number, high: number) => ({ low, likely, high });
const NEEDS = { downtime_limit_ms: 3100, throughput_bytes_per_s: 2 ** 30, throttle_percent: null };
const ENDS: Candidate = {
  profile: "fast",
  revision: 1,
  blockers: [],
  throughput: {
    bytes_per_s: range(2 ** 27, 2 ** 27, 2 ** 27),
    switchover_bytes_per_s: range(2 ** 27, 2 ** 27, 2 ** 27),
    records: 3,
  },
  prospect: {
    ends: true,
    total_ms: range(11_000, 12_000, 14_000),
    silence_ms: range(20, 60, 200),
    sent_bytes: range(2 ** 30, 2 ** 30, 2 ** 30),
    passes: range(3, 3, 3),
    throttle_percent: range(0, 0, 0),
    needs: null,
  },
  notes: [],
  copy_of_disks: null,
  corrected_by: {},
};
const ENDLESS: Candidate = {
  ...ENDS,
  profile: "slow",
  prospect: {
    ends: false,
    total_ms: null,
    silence_ms: null,
    sent_bytes: null,
    passes: null,
    throttle_percent: null,
    needs: NEEDS,
  },
};
const NOTE = { field: "throughput", code: "throughput_not_known", message: "m", remedy: "say it" };
const UNKNOWN: Candidate = { ...ENDS, throughput: null, prospect: null, notes: [NOTE] };

const told = (...candidates: Candidate[]): Schemas["MigrationForecastView"] => ({
  vm: "v",
  vm_name: "db1",
  source: "a",
  destination: "b",
  probe: {
    measured_at: "2026-11-24T12:00:00Z",
    age_s: 65,
    took_ms: 17_000,
    memory_bytes: 2 ** 30,
    used_bytes: 2 ** 29,
    held_bytes: null,
    contents: null,
    changed: null,
    dirtied: [],
  },
  candidates,
});

beforeEach(() => {
  vi.resetAllMocks();
});

async function ask(profile: string, name: string) {
  rendered(<MigrationForecast vm="v" destination="b" profile={profile} />);
  await userEvent.click(await screen.findByRole("button", { name }));
}

test("nothing is measured before it is asked for, and the profiles are compared", async () => {
  forecastVm.mockResolvedValue(told(ENDS, ENDLESS));
  await ask("slow", "Forecast and compare");
  expect(forecastVm.mock.calls).toEqual([["v", { destination: "b", profiles: ["slow", "fast"] }]]);
  const table = await screen.findByRole("grid", { name: "Forecast" });
  expect(table).toHaveTextContent("12 s (11 s to 14 s)");
  expect(table).toHaveTextContent("60 ms (20 ms to 200 ms)");
  expect(table).toHaveTextContent("1 GiB");
  expect(table).toHaveTextContent("needs a downtime limit of 3.1 s or 1 GiB/s of throughput");
  expect(screen.getByText(/128 MiB\/s, by 3 migrations\. Measured 65 s ago/)).toBeVisible();
});

test("the copy of disks is told as a part of the whole", async () => {
  const copy = {
    bytes: range(2 ** 31, 2 ** 31, 2 ** 31),
    ms: range(4000, 5000, 9000),
    bytes_per_s: null,
    records: 0,
  };
  forecastVm.mockResolvedValue(told({ ...ENDS, copy_of_disks: copy }));
  await ask("fast", "Forecast and compare");
  expect(
    await screen.findByText("fast: of that the copy of disks 5.0 s (4.0 s to 9.0 s), 2 GiB."),
  ).toBeVisible();
});

test("what is not known is said with what would make it known", async () => {
  forecastVm.mockResolvedValue(told(UNKNOWN));
  await ask("", "Forecast");
  expect(forecastVm).toHaveBeenCalledWith("v", { destination: "b", profiles: [] });
  expect(await screen.findByRole("grid", { name: "Forecast" })).toHaveTextContent("not known");
  expect(screen.getByText(/The throughput is not known/)).toBeVisible();
  expect(screen.getByText("say it")).toBeVisible();
});

test("a refusal is told with its remedy", async () => {
  const stands = { field: "vm", code: "not_running", message: "it is paused", remedy: "resume it" };
  forecastVm.mockRejectedValue(new ApiError(409, "it is paused", [stands]));
  await ask("", "Forecast");
  expect(await screen.findByText(/resume it/)).toBeVisible();
});

test.each([
  [{ ...ENDS }, "yes"],
  [{ ...UNKNOWN }, "not known"],
  [{ ...ENDS, prospect: ENDS.prospect && { ...ENDS.prospect, ends: null } }, "may not"],
])("%#: whether it ends", (candidate, words) => {
  expect(ending(candidate)).toBe(words);
});

test("it says when recorded migrations adjusted it", async () => {
  forecastVm.mockResolvedValue(told({ ...ENDS, corrected_by: { total_time: 43, silence: 40 } }));
  rendered(<MigrationForecast vm="v" destination="b" profile="fast" />);
  await userEvent.click(await screen.findByRole("button", { name: /^Forecast/ }));
  expect(await screen.findByText(/are adjusted using 43 recorded migrations/)).toBeVisible();
});

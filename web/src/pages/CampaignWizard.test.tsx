import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { render, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { MemoryRouter, Route, Routes } from "react-router";
import { beforeEach, expect, test, vi } from "vitest";
import { ApiError, type ProblemItem } from "../api/client";
import CampaignWizard from "./CampaignWizard";

vi.setConfig({ testTimeout: 60_000 }); // a whole wizard, on a machine that may be busy

const asked = vi.hoisted(() => ({ GET: vi.fn(), POST: vi.fn() }));

vi.mock("../api/client", async (original) => ({
  ...(await original<typeof import("../api/client")>()),
  client: asked,
}));

const LISTS: Record<string, unknown[]> = {
  "/api/v1/scenarios": [
    { name: "plain/1gbs", family: "plain", title: "No tuning", applicable: true, reason: "" },
  ],
  "/api/v1/run-metrics": [
    { name: "total_time_ms", kind: "migration", title: "Total time", better: "lower" },
    { name: "guest_pace", kind: "migration", title: "Pace", better: "none" },
    { name: "iops", kind: "block", title: "Requests a second", better: "higher" },
  ],
};
const FORECAST = {
  runs: 21,
  detectable_percent: 21.3,
  noise_percent: 10,
  noise_reason: "assumed",
  duration_s: 1260,
  duration_reason: "assumed",
};
let problems: ProblemItem[] = [];

beforeEach(() => {
  problems = [];
  vi.resetAllMocks();
  asked.GET.mockImplementation(async (path: string) => ({
    data: { items: LISTS[path] ?? [], next: null },
  }));
  asked.POST.mockImplementation(async (path: string) => {
    if (problems.length > 0) throw new ApiError(422, "it cannot be accepted", problems);
    return path.endsWith("forecast")
      ? { data: { campaign: {}, forecast: FORECAST } }
      : { data: { id: "made" } };
  });
});

function open() {
  render(
    <QueryClientProvider
      client={new QueryClient({ defaultOptions: { queries: { retry: false } } })}
    >
      <MemoryRouter initialEntries={["/bench/campaigns/new?scenario=plain/1gbs"]}>
        <Routes>
          <Route path="/bench/campaigns/new" element={<CampaignWizard />} />
          <Route path="/bench/campaigns/:id" element={<p>ordered</p>} />
        </Routes>
      </MemoryRouter>
    </QueryClientProvider>,
  );
}

const next = () => screen.getByRole("button", { name: "Next" });

test("a campaign is put together, foreseen, and ordered only then", async () => {
  const user = userEvent.setup();
  open();
  expect(await screen.findByRole("combobox", { name: /Scenario/ })).toHaveValue("plain/1gbs");
  expect(next()).toBeDisabled();
  await user.type(screen.getByRole("textbox", { name: /Name/ }), "mine");
  await waitFor(() => expect(next()).toBeEnabled());
  await user.click(next());
  expect(screen.getByText("All arms are the same so far")).toBeVisible();
  await user.click(next());
  const metric = await screen.findByRole("combobox", { name: /Primary metric/ });
  expect(within(metric).getAllByRole("option")).toHaveLength(1); // what explains is not judged
  const forecast = await screen.findByRole("region", { name: "Forecast" });
  expect(within(forecast).getByText(/From 21.3 %/)).toBeVisible();
  expect(within(forecast).getByText(/About 21 min/)).toBeVisible();
  await user.click(next());
  const start = screen.getByRole("button", { name: "Start campaign" });
  await waitFor(() => expect(start).toBeEnabled());
  expect(asked.POST.mock.calls.every(([path]) => path.endsWith("forecast"))).toBe(true);
  await user.click(start);
  expect(await screen.findByText("ordered")).toBeVisible();
  const [path, sent] = asked.POST.mock.lastCall ?? [];
  expect(path).toBe("/api/v1/campaigns");
  expect(sent.body).toMatchObject({ name: "mine", scenario: "plain/1gbs", blocks: 10 });
});

test("what the service refuses is told at its field, and stops there", async () => {
  const user = userEvent.setup();
  problems = [
    { field: "name", code: "invalid_name", message: "'Mine' is no name", remedy: "use letters" },
  ];
  open();
  await user.type(await screen.findByRole("textbox", { name: /Name/ }), "Mine");
  expect(await screen.findByText("'Mine' is no name: use letters")).toBeVisible();
  expect(next()).toBeDisabled();
});

test("a problem of another step does not stop this one, but stops the start", async () => {
  const user = userEvent.setup();
  problems = [{ field: "blocks", code: "invalid_value", message: "too few", remedy: "take 6" }];
  open();
  await user.type(await screen.findByRole("textbox", { name: /Name/ }), "mine");
  await waitFor(() => expect(next()).toBeEnabled());
  await user.click(next());
  await user.click(next());
  expect(await screen.findByText("too few: take 6")).toBeVisible();
  expect(next()).toBeDisabled();
  expect(screen.queryByRole("region", { name: "Forecast" })).toBeNull();
});

test("an arm without a name or with a tunable without a value goes no further", async () => {
  const user = userEvent.setup();
  LISTS["/api/v1/tunables"] = [{ name: "multifd" }];
  open();
  await user.type(await screen.findByRole("textbox", { name: /Name/ }), "mine");
  await waitFor(() => expect(next()).toBeEnabled());
  await user.click(next());
  const second = screen.getByRole("group", { name: "Arm 2" });
  await user.click(within(second).getByRole("button", { name: "Set a tunable" }));
  await user.selectOptions(
    await within(second).findByRole("combobox", { name: "Tunable 1 of tuned" }),
    "multifd",
  );
  expect(within(second).getByText("Give a value for multifd")).toBeVisible();
  expect(next()).toBeDisabled();
  await user.type(within(second).getByRole("textbox", { name: "Value 1 of tuned" }), "on");
  await waitFor(() => expect(next()).toBeEnabled());
  await user.clear(within(second).getByRole("textbox", { name: /^Name/ }));
  expect(next()).toBeDisabled();
});

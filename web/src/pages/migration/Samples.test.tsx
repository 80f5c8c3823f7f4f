import { screen, waitFor } from "@testing-library/react";
import { beforeEach, expect, test, vi } from "vitest";
import { client, type Schemas } from "../../api/client";
import { rendered } from "../../test/rendered";
import { Samples } from "./Samples";

vi.mock("../../components/charts/Chart", () => ({
  Chart: () => null,
  prepareCharts: () => undefined,
}));
const RECORD = {
  id: "m1",
  step_records: [],
  ended: false,
  samples_kept: "all",
} as unknown as Schemas["MigrationView"];
const sample = (at_ms: number) => ({ at_ms, boundary: false }) as Schemas["SampleView"];
const asked = vi.spyOn(client, "GET");

type Asking = { params?: { query?: { later_than_ms?: number } } };

/** The service, which has stored these so far. */
function stored(samples: readonly Schemas["SampleView"][]): void {
  asked.mockImplementation((async (_path: string, asking?: Asking) => {
    const later = asking?.params?.query?.later_than_ms ?? -1;
    return { data: { items: samples.filter((each) => each.at_ms > later), next: null } };
  }) as never);
}

beforeEach(() => asked.mockReset());

test("once it has ended, what came since the last look is fetched without an event", async () => {
  stored([sample(0), sample(100)]);
  const { again } = rendered(<Samples record={RECORD} />);
  expect(await screen.findByText(/^2 samples/)).toBeVisible();
  stored([sample(0), sample(100), sample(200)]);
  again(<Samples record={{ ...RECORD, ended: true }} />);
  await waitFor(() => expect(screen.getByText(/^3 samples/)).toBeVisible(), { timeout: 900 });
});

test.each([
  [null, "convergence steps"],
  [{ shadow: false }, "what steering did"],
  [{ shadow: true }, "what steering would have done"],
])("what dashed lines mark is said: %o", async (intent, words) => {
  stored([sample(0)]);
  rendered(<Samples record={{ ...RECORD, step_records: [{}], intent } as never} />);
  expect(
    await screen.findByText(
      `1 sample; thin lines mark where iterations began, dashed lines mark ${words}.`,
    ),
  ).toBeVisible();
});

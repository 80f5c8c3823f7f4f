import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useLocation } from "react-router";
import { beforeEach, expect, test, vi } from "vitest";
import { rendered } from "../../test/rendered";
import Campaigns from "../Campaigns";
import Runs from "../Runs";
import Studies from "../Studies";

const asked = vi.hoisted(() => ({ GET: vi.fn() }));

vi.mock("../../api/client", async (original) => ({
  ...(await original<typeof import("../../api/client")>()),
  client: asked,
}));
vi.mock("../../components/live/live", () => ({ useLiveEvents: () => {} }));

beforeEach(() => {
  asked.GET.mockReset();
  asked.GET.mockResolvedValue({ data: { items: [], next: null } });
});

/** What the service was asked for last of a list. */
const query = (path: string) =>
  asked.GET.mock.calls.filter(([to]) => to === path).at(-1)?.[1].params.query;
const PATIENT = { timeout: 10_000 }; // what is typed waits until nobody types any more

function Address() {
  return <p data-testid="address">{useLocation().search}</p>;
}

test.each([
  ["/api/v1/campaigns", "Search by name or UUID", Campaigns, "No campaign matches"],
  ["/api/v1/studies", "Search by name or UUID", Studies, "No study matches"],
  ["/api/v1/runs", "Search by scenario, arm, profile or UUID", Runs, "No run matches"],
] as const)("%s are searched for a part", async (path, label, Page, nothing) => {
  rendered(<Page />);
  await userEvent.type(screen.getByRole("textbox", { name: label }), "tun");
  await expect.poll(() => query(path)?.search, PATIENT).toBe("tun");
  expect(await screen.findByText(nothing)).toBeVisible();
});

test("what a link narrowed the runs to is shown, and can be taken away", async () => {
  rendered(
    <>
      <Runs />
      <Address />
    </>,
    "/?scenario=plain/1gbs&search=tuned",
  );
  expect(query("/api/v1/runs")).toMatchObject({ scenario: "plain/1gbs", search: "tuned" });
  expect(screen.getByText("Scenario: plain/1gbs")).toBeVisible();
  await userEvent.click(screen.getByRole("button", { name: "Show any scenario" }));
  expect(screen.getByTestId("address")).toHaveTextContent("?search=tuned");
  expect(screen.queryByText("Scenario: plain/1gbs")).toBeNull();
});

import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useLocation } from "react-router";
import { expect, test, vi } from "vitest";
import { moment } from "../../components/text/format";
import { rendered } from "../../test/rendered";
import { HostEvacuations } from "./HostEvacuations";

const asked = vi.hoisted(() => ({ GET: vi.fn() }));

vi.mock("../../api/client", async (original) => ({
  ...(await original<typeof import("../../api/client")>()),
  client: asked,
}));
vi.mock("../../components/live/live", () => ({ useLiveEvents: () => {} }));

const DONE = {
  id: "e1",
  host: "rack 1",
  state: "completed",
  total: 3,
  moved: 2,
  left: 1,
  created_at: "2026-11-21T09:00:00Z",
};

function Where() {
  return <output>{useLocation().pathname}</output>;
}

test("a click anywhere in a row opens the evacuation, and its first column is the link", async () => {
  asked.GET.mockResolvedValue({ data: { items: [DONE], next: null } });
  rendered(
    <>
      <Where />
      <HostEvacuations name="rack 1" />
    </>,
  );
  const table = await screen.findByRole("grid", { name: "Evacuations" });
  const address = "/hosts/rack%201/evacuations/e1";
  const link = within(table).getByRole("link", { name: moment(DONE.created_at) });
  expect(link).toHaveAttribute("href", address);
  expect(link.querySelector("time")).toBeNull(); // a link, not a time that looks like none
  await userEvent.click(within(table).getByText("2 of 3"));
  expect(screen.getByRole("status")).toHaveTextContent(address);
});

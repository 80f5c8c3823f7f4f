import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, test, vi } from "vitest";
import * as actions from "../../api/actions";
import { client, type Schemas } from "../../api/client";
import { rendered } from "../../test/rendered";
import { CreateWebhook } from "./CreateWebhook";
import { Deliveries } from "./Deliveries";
import { Webhooks } from "./Webhooks";

vi.mock("../../api/actions");

const hook: Schemas["WebhookView"] = {
  id: "aa",
  name: "ops",
  url: "https://ops.example/",
  events: ["vm.drifted"],
  active: true,
  created_by: "user ada",
  created_at: "2026-11-22T03:00:00Z",
  old_until: null,
};

const failed: Schemas["DeliveryView"] = {
  number: 17,
  webhook: "aa",
  message: "msg_1",
  kind: "vm.drifted",
  subject: "db1",
  payload: "{}",
  state: "failed",
  attempts: 9,
  created_at: "2026-11-22T03:00:00Z",
  next_at: null,
  status: 500,
  problem: "the receiver answered 500",
  ended_at: "2026-11-23T03:00:00Z",
};

test("a new webhook's secret is shown, and Escape does not lose it", async () => {
  vi.mocked(actions.createWebhook).mockResolvedValue({ ...hook, secret: "whsec_x" });
  const close = vi.fn();
  const made = vi.fn();
  rendered(<CreateWebhook made={made} close={close} />);
  expect(screen.getByRole("button", { name: "Create" })).toBeDisabled();
  await userEvent.type(screen.getByRole("textbox", { name: "Name" }), "ops");
  await userEvent.type(screen.getByRole("textbox", { name: "URL" }), "https://ops.example/");
  await userEvent.click(screen.getByRole("checkbox", { name: "campaign.ended" }));
  await userEvent.click(screen.getByRole("button", { name: "Create" }));
  expect(actions.createWebhook).toHaveBeenCalledWith({
    name: "ops",
    url: "https://ops.example/",
    events: ["migration.ended", "evacuation.ended", "study.ended", "vm.drifted", "host.findings"],
  });
  expect(await screen.findByDisplayValue("whsec_x")).toBeVisible();
  expect(made).toHaveBeenCalled();
  await userEvent.keyboard("{Escape}");
  expect(close).not.toHaveBeenCalled();
  await userEvent.click(screen.getByRole("button", { name: "I have copied it" }));
  expect(close).toHaveBeenCalled();
});

test("a webhook is deleted only after the question", async () => {
  vi.spyOn(client, "GET").mockResolvedValue({ data: { items: [hook] } } as never);
  vi.mocked(actions.deleteWebhook).mockResolvedValue(undefined);
  rendered(<Webhooks />);
  await userEvent.click(await screen.findByRole("button", { name: "Delete ops" }));
  const dialog = within(await screen.findByRole("dialog"));
  expect(actions.deleteWebhook).not.toHaveBeenCalled();
  await userEvent.click(dialog.getByRole("button", { name: "Delete" }));
  expect(actions.deleteWebhook).toHaveBeenCalledWith("aa");
});

test("a delivery says why it failed and is replayed", async () => {
  vi.spyOn(client, "GET").mockResolvedValue({ data: { items: [failed], next: null } } as never);
  vi.mocked(actions.replayDelivery).mockResolvedValue({ ...failed, state: "pending" });
  rendered(<Deliveries webhook={hook} close={() => {}} />);
  expect(await screen.findByText("the receiver answered 500")).toBeVisible();
  await userEvent.click(screen.getByRole("button", { name: "Replay 17" }));
  expect(actions.replayDelivery).toHaveBeenCalledWith("aa", 17);
});

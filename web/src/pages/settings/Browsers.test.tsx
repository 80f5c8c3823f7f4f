import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, test, vi } from "vitest";
import * as actions from "../../api/actions";
import { client, type Schemas } from "../../api/client";
import { rendered } from "../../test/rendered";
import { Browsers } from "./Browsers";

vi.mock("../../api/actions");

const browser = (id: string, name: string, own: boolean): Schemas["BrowserView"] => ({
  id,
  who: { kind: "oidc", id: `sub-${name}`, name },
  rights: { scopes: ["read"], hosts: null, selector: {} },
  address: "10.0.0.9",
  signed_in_at: "2026-11-22T03:00:00Z",
  seen_at: "2026-11-22T03:01:00Z",
  expires_at: "2026-11-22T15:00:00Z",
  own,
});

test("another's browser can be signed out, one's own not here", async () => {
  const items = [browser("aa", "ada", false), browser("bb", "bob", true)];
  vi.spyOn(client, "GET").mockResolvedValue({ data: { items, next: null } } as never);
  vi.mocked(actions.signBrowserOut).mockResolvedValue(undefined);
  rendered(<Browsers />);
  expect(await screen.findByText("oidc bob (this browser)")).toBeVisible();
  expect(screen.queryByRole("button", { name: /Sign out bob/ })).toBeNull();
  await userEvent.click(screen.getByRole("button", { name: "Sign out ada, aa" }));
  const dialog = within(await screen.findByRole("dialog"));
  expect(actions.signBrowserOut).not.toHaveBeenCalled();
  await userEvent.click(dialog.getByRole("button", { name: "Sign out" }));
  expect(actions.signBrowserOut).toHaveBeenCalledWith("aa");
});

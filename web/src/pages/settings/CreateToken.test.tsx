import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, test, vi } from "vitest";
import * as actions from "../../api/actions";
import type { Schemas } from "../../api/client";
import { rendered } from "../../test/rendered";
import { CreateToken } from "./CreateToken";

vi.mock("../../api/actions");

test("a new token's secret is shown, and Escape does not lose it", async () => {
  vi.mocked(actions.createToken).mockResolvedValue({
    name: "ci",
    token: "vmt_secret",
  } as Schemas["TokenMade"]);
  const close = vi.fn();
  const made = vi.fn();
  rendered(<CreateToken scopes={{ read: "see" }} made={made} close={close} />);
  expect(screen.getByRole("button", { name: "Create" })).toBeDisabled();
  await userEvent.type(screen.getByRole("textbox", { name: "Name" }), "ci");
  await userEvent.click(screen.getByRole("button", { name: "Create" }));
  expect(await screen.findByDisplayValue("vmt_secret")).toBeVisible();
  expect(made).toHaveBeenCalled();
  await userEvent.keyboard("{Escape}");
  expect(close).not.toHaveBeenCalled();
  await userEvent.click(screen.getByRole("button", { name: "I have copied it" }));
  expect(close).toHaveBeenCalled();
});

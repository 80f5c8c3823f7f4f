import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useLocation } from "react-router";
import { expect, test, vi } from "vitest";
import { rendered } from "../../test/rendered";
import { type Filter, Filters, useFilters } from "./Filters";

vi.setConfig({ testTimeout: 30_000 }); // on a machine that may be busy

const FILTERS: readonly Filter<"name" | "state">[] = [
  { name: "name", label: "Only of this name", empty: "Name" },
  { name: "state", label: "Only in this state", empty: "Any", choices: ["on", ["off", "not on"]] },
];

function Filtered() {
  const [chosen, choose] = useFilters(FILTERS);
  return (
    <>
      <Filters filters={FILTERS} chosen={chosen} choose={choose} />
      <p data-testid="chosen">{JSON.stringify(chosen)}</p>
      <p data-testid="address">{useLocation().search}</p>
    </>
  );
}

const PATIENT = { timeout: 10_000 }; // what is typed waits until nobody types any more
const chosen = () => JSON.parse(screen.getByTestId("chosen").textContent ?? "");
const address = () => screen.getByTestId("address");

test("filters are read from the address, but for choices that there are none of", () => {
  rendered(<Filtered />, "/?name=web&state=off&other=1");
  expect(chosen()).toEqual({ name: "web", state: "off" });
  expect(screen.getByRole("textbox", { name: "Only of this name" })).toHaveValue("web");
  expect(screen.getByRole("option", { name: "not on" })).toHaveProperty("selected", true);
});

test("an address with a choice that is none lets all through", () => {
  rendered(<Filtered />, "/?state=perhaps");
  expect(chosen()).toEqual({});
});

test("what is chosen and typed goes to the address, and leaves it when it is emptied", async () => {
  rendered(<Filtered />, "/?other=1");
  await userEvent.selectOptions(screen.getByRole("combobox"), "on");
  await userEvent.type(screen.getByRole("textbox"), "db");
  await expect.poll(() => address().textContent, PATIENT).toBe("?other=1&state=on&name=db");
  await userEvent.selectOptions(screen.getByRole("combobox"), "");
  await expect.poll(() => address().textContent, PATIENT).toBe("?other=1&name=db");
});

import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeAll, expect, test, vi } from "vitest";
import { tunable } from "../../test/profiles";
import { rendered } from "../../test/rendered";
import { TunableGroups } from "./TunableGroups";

const TABLE = [
  tunable("multifd", { title: "Parallel", kind: "boolean", subject: "Parallel migration" }),
  tunable("multifd_channels", { title: "Connections", subject: "Parallel migration" }),
  tunable("downtime_limit_ms", { title: "Downtime limit", subject: "Switchover" }),
];
const NONE = { text: undefined, problem: undefined, notes: [], findings: [] };
const groups = (values: Record<string, string>, sought: string | null = null) => (
  <TunableGroups
    tunables={TABLE}
    values={values}
    remarks={() => NONE}
    sought={sought === null ? null : { tunable: sought, count: 1 }}
    change={vi.fn()}
  />
);

beforeAll(() => {
  Element.prototype.scrollIntoView = vi.fn();
});

test("only what is set is shown, and all of a subject on request", async () => {
  rendered(groups({ multifd: "on" }));
  expect(screen.getByLabelText("Parallel")).toHaveValue("on");
  expect(screen.queryByLabelText("Connections")).toBeNull();
  expect(screen.getByText("1 of 2 set")).toBeInTheDocument();
  await userEvent.click(screen.getByRole("button", { name: "Show all of Parallel migration" }));
  expect(screen.getByLabelText("Connections")).toBeInTheDocument();
  expect(screen.queryByLabelText("Downtime limit")).toBeNull();
});

test("words find tunables of every subject, and hide the others", async () => {
  rendered(groups({ multifd: "on" }));
  await userEvent.type(screen.getByLabelText("Find a tunable"), "downtime");
  expect(screen.getByLabelText("Downtime limit")).toBeInTheDocument();
  expect(screen.queryByLabelText("Parallel")).toBeNull();
});

test("a field that is sought is drawn and has the focus, whatever was searched for", async () => {
  const { again } = rendered(groups({}));
  await userEvent.type(screen.getByLabelText("Find a tunable"), "downtime");
  again(groups({}, "multifd_channels"));
  await waitFor(() => expect(screen.getByLabelText("Connections")).toHaveFocus());
});

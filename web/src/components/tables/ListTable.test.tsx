import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useLocation } from "react-router";
import { expect, test, vi } from "vitest";
import { rendered } from "../../test/rendered";
import { TUNING_STATES, TuningLabel } from "../labels/TuningLabel";
import { ListTable, PagedList } from "./ListTable";

test("each cell carries its column's title, for screens where columns do not fit", () => {
  rendered(
    <ListTable
      label="Hosts"
      rows={[{ name: "a" }, { name: "b" }]}
      name={(row) => row.name}
      columns={[
        { title: "Name", cell: (row) => row.name },
        { title: "Actions", actions: true, cell: () => "do" },
      ]}
    />,
  );
  const table = screen.getByRole("grid", { name: "Hosts" });
  expect(within(table).getAllByRole("row")).toHaveLength(3);
  expect(within(table).getByText("a").closest("td")).toHaveAttribute("data-label", "Name");
});

test("every way to be tuned has its word, the worst first", () => {
  expect(TUNING_STATES[0]).toBe("drifted");
  expect(TUNING_STATES.at(-1)).toBe("tuned");
  rendered(<TuningLabel state="drifted" tuning={null} />);
  expect(screen.getByText("drifted")).toBeVisible();
});

function Where() {
  const { pathname, search } = useLocation();
  return <output>{pathname + search}</output>;
}

const ROWS = [
  { name: "b", size: 2 },
  { name: "a", size: 10 },
  { name: "c", size: null },
];

function shown(address = "/") {
  rendered(
    <>
      <Where />
      <ListTable
        label="Hosts"
        rows={ROWS}
        name={(row) => row.name}
        to={(row) => `/hosts/${row.name}`}
        chosen
        columns={[
          { title: "Name", cell: (row) => <button type="button">{row.name}</button> },
          { title: "Size", value: (row) => row.size, cell: (row) => row.size },
        ]}
      />
    </>,
    address,
  );
  return screen.getByRole("grid", { name: "Hosts" });
}

const names = () =>
  screen
    .getAllByRole("row")
    .slice(1)
    .map((row) => row.textContent?.[0]);

test("a row opens by a click anywhere but on what has a use of its own, and by Enter", async () => {
  const table = shown();
  await userEvent.click(within(table).getByRole("button", { name: "b" }));
  expect(screen.getByText("/")).toBeVisible();
  await userEvent.click(within(table).getByText("10"));
  expect(screen.getByText("/hosts/a")).toBeVisible();
  within(table).getAllByRole("row")[1]?.focus();
  await userEvent.keyboard("{Enter}");
  expect(screen.getByText("/hosts/b")).toBeVisible();
});

test("a list that is here as a whole is sorted by a column, what has no value comes last", async () => {
  shown();
  await userEvent.click(screen.getByRole("button", { name: "Size" }));
  expect(names()).toEqual(["b", "a", "c"]);
  await userEvent.click(screen.getByRole("button", { name: "Size" }));
  expect(names()).toEqual(["a", "b", "c"]);
  expect(screen.getByText("/?sort=-size")).toBeVisible();
});

test("columns are hidden in the address, the first never", async () => {
  shown("/?hide=Size,Name");
  expect(screen.queryByRole("columnheader", { name: "Size" })).toBeNull();
  expect(screen.getByRole("columnheader", { name: "Name" })).toBeVisible();
  await userEvent.click(screen.getByRole("button", { name: /^Columns/ }));
  await userEvent.click(screen.getByRole("checkbox", { name: "Size" }));
  expect(screen.getByRole("columnheader", { name: "Size" })).toBeVisible();
});

test("all of a list is fetched once its table is to sort it, and only then", () => {
  const next = vi.fn();
  const page = { items: ["b"], next: "more" };
  const list = {
    data: { pages: [page], pageParams: [null] },
    isSuccess: true,
    hasNextPage: true,
    isFetchingNextPage: false,
    fetchNextPage: next,
  };
  const at = (address: string, whole: boolean) =>
    rendered(
      <PagedList list={list as never} whole={whole} empty="nothing">
        {() => "rows"}
      </PagedList>,
      address,
    );
  at("/", true);
  at("/?sort=name", false);
  expect(next).not.toHaveBeenCalled();
  at("/?sort=name", true);
  expect(next).toHaveBeenCalled();
});

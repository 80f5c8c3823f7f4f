import { screen, within } from "@testing-library/react";
import { expect, test } from "vitest";
import { rendered } from "../test/rendered";
import { ListTable } from "./ListTable";
import { TUNING_STATES, TuningLabel } from "./TuningLabel";

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

import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, expect, test, vi } from "vitest";
import { changeMigration } from "../../api/actions";
import type { Schemas } from "../../api/client";
import { rendered } from "../../test/rendered";
import { Change } from "./Change";

vi.mock("../../api/actions", () => ({ changeMigration: vi.fn() }));

beforeEach(() => {
  vi.mocked(changeMigration).mockReset();
  vi.mocked(changeMigration).mockResolvedValue({} as Schemas["MigrationView"]);
});

test("two clicks raise the downtime limit to what lets it end, and say what that does", async () => {
  rendered(<Change id="m1" needed={639.2} />);
  await userEvent.click(screen.getByRole("button", { name: "Raise downtime limit" }));
  expect(screen.getByText(/The guest may stand still for that long/)).toBeVisible();
  expect(changeMigration).not.toHaveBeenCalled();
  await userEvent.click(screen.getByRole("button", { name: "Change now" }));
  expect(changeMigration).toHaveBeenCalledExactlyOnceWith("m1", { downtime_limit_ms: "640 ms" });
});

test("another value is what is typed", async () => {
  rendered(<Change id="m1" needed={null} />);
  await userEvent.click(screen.getByRole("button", { name: "Change bandwidth" }));
  const field = screen.getByLabelText("Maximum bandwidth");
  await userEvent.clear(field);
  expect(screen.getByRole("button", { name: "Change now" })).toBeDisabled();
  await userEvent.type(field, " 64 MiB/s ");
  await userEvent.click(screen.getByRole("button", { name: "Change now" }));
  const asked = { max_bandwidth_bytes_per_s: "64 MiB/s" };
  expect(changeMigration).toHaveBeenCalledExactlyOnceWith("m1", asked);
});

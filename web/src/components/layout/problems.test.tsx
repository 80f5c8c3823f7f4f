import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, test, vi } from "vitest";
import { ApiError } from "../../api/client";
import { rendered } from "../../test/rendered";
import { finding } from "../../test/vms";
import { Async, Failure } from "./Async";
import { Findings, inOrder } from "./Findings";
import { Problems } from "./Problems";

const PROBLEM = { field: "hosts.b", code: "lost", message: "b is silent", remedy: "start it" };
const QUERY = { data: undefined, error: null, isPending: true, refetch: vi.fn() };

test("what is missing is told with its remedy", () => {
  rendered(<Problems problems={[PROBLEM]} />);
  expect(screen.getByText(/Host b: b is silent/)).toBeVisible();
  expect(screen.getByText("Start it")).toBeVisible();
});

test("a problem of the whole answer needs no name before it", () => {
  rendered(<Problems problems={[{ ...PROBLEM, field: "" }]} />);
  expect(screen.getByRole("heading")).toHaveTextContent(/B is silent$/);
  expect(screen.queryByText(/: b is silent/)).toBeNull();
});

test("an error tells each problem once, and can be tried again", async () => {
  const again = vi.fn();
  const error = new ApiError(424, "b is silent", [PROBLEM]);
  rendered(<Failure error={error} again={again} />);
  expect(screen.getAllByText(/b is silent/)).toHaveLength(1);
  expect(screen.getByText(/start it/i)).toBeVisible();
  await userEvent.click(screen.getByRole("button", { name: "Try again" }));
  expect(again).toHaveBeenCalled();
});

test("old data stays in sight beside an error", () => {
  const query = { ...QUERY, data: "old", error: new Error("lost"), isPending: false };
  rendered(<Async query={query}>{(data) => <p>{data}</p>}</Async>);
  expect(screen.getByText("old")).toBeVisible();
  expect(screen.getByText(/lost/)).toBeVisible();
});

test("what loads says that it is busy", () => {
  const { container } = rendered(<Async query={QUERY}>{() => null}</Async>);
  expect(container.querySelector("[aria-busy=true]")).not.toBeNull();
});

test("blockers come first, and evidence has its unit", () => {
  const warning = finding("warning", null, "low");
  const blocker = { ...finding("blocker", "multifd", "gone"), evidence: { free_bytes: 1048576 } };
  expect(inOrder([warning, blocker])).toEqual([blocker, warning]);
  rendered(<Findings findings={[warning, blocker]} />);
  expect(screen.getByText("1 MiB")).toBeVisible();
  expect(screen.getByText("Free")).toBeVisible();
});

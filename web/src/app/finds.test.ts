import { expect, test } from "vitest";
import { fixed, offers } from "./finds";

const found = (kind: "vm" | "host" | "run", id: string) => ({ kind, id, title: id, detail: "" });

test("without a word all pages are offered", () => {
  expect(fixed("").every(({ kind }) => kind === "Page")).toBe(true);
  expect(fixed("").map(({ to }) => to)).toContain("/bench/history");
});

test("words find pages and actions by the beginnings of theirs", () => {
  expect(fixed("cre prof").map(({ to }) => to)).toEqual(["/profiles/new"]);
  expect(fixed("nothing like that")).toEqual([]);
});

test("what begins with the word comes before what only has it", () => {
  const titles = (text: string, ...ids: string[]) =>
    offers(
      text,
      ids.map((id) => found("vm", id)),
    ).map(({ title }) => title);
  expect(titles("web", "old-web", "web1")).toEqual(["web1", "Create webhook", "old-web"]);
  expect(titles("add host", "x-add host")[0]).toBe("Add host");
  expect(titles("host", "host", "host2").slice(0, 3)).toEqual(["host", "Hosts", "host2"]);
});

test("with one VM or host found, what can be done with it is offered", () => {
  const one = offers("web", [found("vm", "web1")]).map(({ to }) => to);
  expect(one).toContain("/vms/web1?do=migrate");
  expect(one).toContain("/vms/web1");
  const two = offers("web", [found("vm", "web1"), found("vm", "web2"), found("host", "r 1")]);
  expect(two.map(({ to }) => to)).not.toContain("/vms/web1?do=migrate");
  expect(two.map(({ to }) => to)).toContain("/hosts/r%201/evacuate");
});

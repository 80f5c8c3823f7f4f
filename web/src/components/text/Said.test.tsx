import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, test } from "vitest";
import { rendered } from "../../test/rendered";
import { useToasts } from "../dialogs/toasts";
import { Findings } from "../layout/Findings";
import { Problems } from "../layout/Problems";
import { Said } from "./Said";

test("what stands in backticks is code, without them", () => {
  const { container } = render(<Said>{"run `uname -r`, or `id`"}</Said>);
  expect(container).toHaveTextContent("run uname -r, or id");
  expect([...container.querySelectorAll("code")].map((each) => each.textContent)).toEqual([
    "uname -r",
    "id",
  ]);
});

test("nor does a notice of what was refused", async () => {
  function Refused() {
    const toasts = useToasts();
    return (
      <button type="button" onClick={() => toasts.failed("No", new Error("run `vmtune doctor`"))}>
        Do it
      </button>
    );
  }
  rendered(<Refused />);
  await userEvent.click(screen.getByRole("button", { name: "Do it" }));
  expect(screen.getByText("vmtune doctor").tagName).toBe("CODE");
});

test("an assertion's own quotes stay within its code", () => {
  const { container } = render(
    <Said>{"it aborts (`reap: Assertion `ret == total' failed`), the host's `id` says"}</Said>,
  );
  expect([...container.querySelectorAll("code")].map((each) => each.textContent)).toEqual([
    "reap: Assertion `ret == total' failed",
    "id",
  ]);
});

test("one backtick alone stays", () => {
  const { container } = render(<Said>{"`ret == total' failed"}</Said>);
  expect(container).toHaveTextContent("`ret == total' failed");
});

test("neither findings nor problems show backticks", () => {
  const finding = {
    code: "x",
    tunable: "",
    severity: "info",
    message: "QEMU aborts with `no memory`",
    remedy: "run `vmtune doctor` there",
    evidence: {},
  } as const;
  const problem = { field: "", code: "x", message: "`a` is bad", remedy: "`vmtune b` helps" };
  const { container } = render(
    <>
      <Findings findings={[{ ...finding, overridable: false }] as never} />
      <Problems problems={[problem]} />
    </>,
  );
  expect(container).not.toHaveTextContent("`");
  expect(container).toHaveTextContent("Run vmtune doctor there");
  expect(container.querySelectorAll("code")).toHaveLength(4);
});

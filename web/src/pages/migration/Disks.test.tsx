import { screen, waitFor } from "@testing-library/react";
import { beforeEach, expect, test, vi } from "vitest";
import type { Schemas } from "../../api/client";
import { rendered } from "../../test/rendered";
import { Disks } from "./Disks";

const asked = vi.hoisted(() => ({ GET: vi.fn() }));

vi.mock("../../api/client", async (original) => ({
  ...(await original<typeof import("../../api/client")>()),
  client: asked,
}));
vi.mock("../../components/charts/Chart", () => ({
  Chart: ({ label, option }: { label: string; option: { series: { name: string }[] } }) => (
    <figure aria-label={label}>{option.series.map((each) => each.name).join(", ")}</figure>
  ),
  prepareCharts: () => {},
}));

let taken: object[];
beforeEach(() => {
  taken = [];
  asked.GET.mockImplementation(async () => ({ data: { items: taken, next: null } }));
});

const DISK: Schemas["CopiedDiskView"] = {
  target: "vda",
  path: "/images/a",
  created: true,
  total_bytes: 1000,
  copied_bytes: 250,
  ready_ms: null,
  bytes_per_s: 0,
  written_bytes_per_s: 0,
  left_ms: null,
  converges: null,
  source_image: "kept",
  source_image_reason: "",
};
const LIVE = { ...DISK, copied_bytes: 500, left_ms: 4000, ready: false };

test("each disk has a bar, which follows the events", () => {
  const record = { id: "m", disks: [DISK], ended: false };
  const { again } = rendered(<Disks record={record} live={undefined} />);
  const bar = screen.getByRole("progressbar", { name: /vda: \/images\/a/ });
  expect(bar).toHaveAttribute("aria-valuenow", "25");
  again(<Disks record={record} live={[LIVE]} />);
  expect(bar).toHaveAttribute("aria-valuenow", "50");
  expect(screen.getByText(/about 4\.0 s left/)).toBeVisible();
});

test("once it has ended the record counts", () => {
  const done = { ...DISK, copied_bytes: 1000, ready_ms: 6100 };
  rendered(<Disks record={{ id: "m", disks: [done], ended: true }} live={[LIVE]} />);
  expect(screen.getByRole("progressbar")).toHaveAttribute("aria-valuenow", "100");
  expect(screen.getByText(/has caught up · after 6\.1 s · its image was made/)).toBeVisible();
});

test("a copy that was over before anybody saw it catch up is whole", () => {
  const all = { ...DISK, copied_bytes: 1000 };
  const { again } = rendered(
    <Disks record={{ id: "m", disks: [all], ended: true }} live={undefined} />,
  );
  expect(screen.getByRole("progressbar")).toHaveAttribute("aria-valuenow", "100");
  again(<Disks record={{ id: "m", disks: [all], ended: false }} live={undefined} />);
  expect(screen.getByRole("progressbar")).toHaveAttribute("aria-valuenow", "99");
});

test("what has become of the source's image is told with its reason", () => {
  const of = (source_image: Schemas["SourceImage"], source_image_reason = "") => ({
    ...DISK,
    target: source_image,
    source_image,
    source_image_reason,
  });
  const disks = [
    of("kept", "copy_source_images is keep"),
    of("removed"),
    of("unknown", "a does not answer"),
  ];
  const { again } = rendered(<Disks record={{ id: "m", disks, ended: true }} live={undefined} />);
  expect(screen.getByText("The source's image is kept: copy_source_images is keep")).toBeVisible();
  expect(screen.getByText("The source's image was removed")).toBeVisible();
  expect(screen.getByText("The source's image may be gone: a does not answer")).toBeVisible();
  again(<Disks record={{ id: "m", disks: [of("kept")], ended: false }} live={undefined} />);
  expect(screen.queryByText(/The source's image/)).toBeNull();
});

test("a disk that does not catch up is said while it runs", () => {
  const stuck = { ...LIVE, converges: false, left_ms: null, written_bytes_per_s: 2048 };
  const { again } = rendered(
    <Disks record={{ id: "m", disks: [DISK], ended: false }} live={[stuck]} />,
  );
  expect(screen.getByText(/vda does not catch up/)).toBeVisible();
  again(
    <Disks
      record={{ id: "m", disks: [{ ...DISK, converges: false }], ended: true }}
      live={[stuck]}
    />,
  );
  expect(screen.queryByText(/vda does not catch up/)).toBeNull();
});

test("what was copied over time is drawn for each disk", async () => {
  const sample = { at_ms: 1000, copied_bytes: 1, total_bytes: 4, bytes_per_s: 1 };
  taken = [1000, 2000].flatMap((at_ms) =>
    ["vda", "vdb"].map((target) => ({ ...sample, at_ms, target, written_bytes_per_s: 2 })),
  );
  const record = { id: "m", disks: [DISK], ended: false };
  rendered(<Disks record={record} live={undefined} />);
  const rates = await screen.findByLabelText("Copy of disks and writes over time");
  expect(rates).toHaveTextContent("vda: copied, vda: written, vdb: copied, vdb: written");
  const left = screen.getByLabelText("Remaining of disks over time");
  expect(left).toHaveTextContent("vda: remaining, vdb: remaining");
});

test.each([0, 1])("with %d samples of disks nothing is drawn", async (count) => {
  const sample = { at_ms: 9, target: "vda", copied_bytes: 1, total_bytes: 4, bytes_per_s: 1 };
  taken = Array(count).fill({ ...sample, written_bytes_per_s: 2 });
  rendered(<Disks record={{ id: "m", disks: [DISK], ended: true }} live={undefined} />);
  await waitFor(() => expect(asked.GET).toHaveBeenCalled());
  expect(screen.queryByLabelText(/over time/)).toBeNull();
});

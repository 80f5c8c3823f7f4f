import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import type { Outlook } from "../../api/progress";
import { rendered } from "../../test/rendered";
import { progress } from "../../test/vms";
import { MigrationProgress } from "./MigrationProgress";
import { expected } from "./outlook";

const NOTHING: Outlook = {
  ends: null,
  left_ms: null,
  least_left_ms: null,
  most_left_ms: null,
  silence_ms: null,
  pass_left_ms: null,
  needs: null,
};

test.each<[Partial<Outlook>, number, string]>([
  [{ pass_left_ms: 4200 }, 1, "first pass done in about 4.2 s, end not known yet"],
  [{ pass_left_ms: 4200 }, 2, "end not known yet"],
  [
    { ends: true, left_ms: 42_000, least_left_ms: 30_000, most_left_ms: 150_000 },
    3,
    "about 42 s left (30 s to 3 min)",
  ],
  [{ ends: true, left_ms: 503, least_left_ms: 501, most_left_ms: 504 }, 3, "about 500 ms left"],
  [
    {
      ends: false,
      needs: {
        downtime_limit_ms: 3100,
        throughput_bytes_per_s: 1.25 * 2 ** 30,
        throttle_percent: null,
      },
    },
    5,
    "will not end by itself: needs a downtime limit of 3.1 s or 1.25 GiB/s of throughput or post-copy",
  ],
  [
    {
      ends: false,
      needs: {
        downtime_limit_ms: null,
        throughput_bytes_per_s: 2 ** 30,
        throttle_percent: null,
        postcopy: false,
      },
    },
    5,
    "will not end by itself: needs 1 GiB/s of throughput",
  ],
])("%o in iteration %d", (outlook, iteration, words) => {
  expect(expected(progress({ iteration, outlook: { ...NOTHING, ...outlook } }))).toBe(words);
});

test("nothing is said where nobody asked, or while the guest is switched over", () => {
  expect(expected(progress({ outlook: null }))).toBeNull();
  expect(expected(progress({ outlook: { ...NOTHING, ends: true }, status: "device" }))).toBeNull();
  const done = progress({ status: "completed", remaining_bytes: 0, dirty_bytes_per_s: 0 });
  expect(expected(done)).toBe("QEMU has completed, the record is being finished");
  rendered(<MigrationProgress title="web1" progress={done} />);
  expect(screen.getByText("QEMU has completed, the record is being finished")).toBeVisible();
});

test("one that is paused in post-copy says so, whatever was told before", () => {
  rendered(<MigrationProgress title="web1" progress={progress({ iteration: 7 })} paused />);
  expect(screen.getByText(/paused in post-copy/)).toBeVisible();
  expect(screen.queryByText(/iteration/)).toBeNull();
});

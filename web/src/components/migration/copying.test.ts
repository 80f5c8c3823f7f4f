import { expect, test } from "vitest";
import type { CopyProgress } from "../../api/progress";
import { progress } from "../../test/vms";
import { behind, copied, copying } from "./copying";

const DISK: CopyProgress = {
  target: "vda",
  copied_bytes: 2 ** 30,
  total_bytes: 2 ** 31,
  bytes_per_s: 100 * 2 ** 20,
  written_bytes_per_s: 0,
  left_ms: 10_000,
  converges: true,
  ready: false,
};
const READY = { ...DISK, target: "vdb", ready: true };

test("the disks' phase says how far each is, and that the memory comes after", () => {
  const now = progress({ phase: "disks", disks: [DISK, READY], disks_left_ms: 10_000 });
  expect(copying(now)).toBe(
    "copying disks · about 10 s left · vda 1 GiB of 2 GiB at 100 MiB/s · vdb has caught up · " +
      "then the memory",
  );
  expect(copying(progress({ phase: "disks" }))).toBe("copying disks · then the memory");
  expect(copied({ ...DISK, bytes_per_s: 0 })).toBe("1 GiB of 2 GiB");
});

test("a copy that does not catch up is told, with what would help", () => {
  const stuck = { ...DISK, converges: false, written_bytes_per_s: 120 * 2 ** 20 };
  expect(behind(stuck)).toContain("the guest writes 120 MiB/s to it, and 100 MiB/s are copied");
  expect([behind(DISK), behind({ ...stuck, ready: true })]).toEqual([null, null]);
});

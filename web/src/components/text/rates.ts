/** What a migration sends and what its guest dirties, in words. */
import { rate } from "./format";

/** Null is what QEMU has not measured yet; what is left out is not spoken of. */
interface Rates {
  throughput_bytes_per_s?: number | null;
  dirty_bytes_per_s?: number | null;
}

export function rates({ throughput_bytes_per_s: sent, dirty_bytes_per_s: dirty }: Rates): string[] {
  return [
    ...(sent === undefined
      ? []
      : [sent === null ? "throughput not known yet" : `sends ${rate(sent)}`]),
    ...(dirty === undefined
      ? []
      : [dirty === null ? "dirty rate not known yet" : `dirties ${rate(dirty)}`]),
  ];
}

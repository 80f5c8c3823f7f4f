import { runFile, runPlot } from "../../api/bench";
import { FileLinks } from "./FileLinks";

/** A run as files. */
export function Downloads({ run }: { run: string }) {
  return (
    <FileLinks
      label="Downloads"
      files={[
        { text: "JSON", href: runFile(run, "json") },
        { text: "CSV (gzip)", href: runFile(run, "csv.gz") },
        { text: "guestperf", href: runFile(run, "guestperf") },
        { text: "Picture", href: runPlot(run), opens: true },
      ]}
    />
  );
}

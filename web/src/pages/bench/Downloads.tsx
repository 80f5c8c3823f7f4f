import { runFile, runPlot } from "../../api/bench";
import type { Schemas } from "../../api/client";
import { FileLinks } from "./FileLinks";

/** A run as files. */
export function Downloads({ run: { id: run, kind } }: { run: Schemas["RunView"] }) {
  return (
    <FileLinks
      label="Downloads"
      files={[
        { text: "JSON", href: runFile(run, "json") },
        { text: "CSV (gzip)", href: runFile(run, "csv.gz") },
        ...(kind === "migration" ? [{ text: "guestperf", href: runFile(run, "guestperf") }] : []),
        { text: "Plots", href: runPlot(run), opens: true },
      ]}
    />
  );
}

import { Link } from "react-router";
import type { Schemas } from "../../api/client";
import { type ColumnOf, ListTable } from "../../components/tables/ListTable";
import { count } from "../../components/text/format";
import { useMetricWords } from "./useMetricWords";

type Trial = Schemas["TrialView"];

/** The settings that a study tried, each with links to its runs. The figures are the search's. */
export function Trials({ rows, kind }: { rows: readonly Trial[]; kind: Schemas["ScenarioKind"] }) {
  const words = useMetricWords(kind);
  const metrics = [...new Set(rows.flatMap((each) => Object.keys(each.medians)))];
  const columns: readonly ColumnOf<Trial>[] = [
    {
      title: "Trial",
      text: "short",
      cell: (each) => `${each.number}${each.finalist ? ", finalist" : ""}`,
    },
    { title: "Origin", cell: (each) => each.origin },
    { title: "Settings", cell: (each) => settingsOf(each) },
    ...metrics.map((metric) => ({
      title: words(metric).title,
      wraps: true,
      cell: (each: Trial) => {
        const value = each.medians[metric];
        return value === undefined ? "–" : words(metric).said(value);
      },
    })),
    { title: "Runs", cell: (each) => <Runs trial={each} /> },
  ];
  return (
    <ListTable
      label="Trials"
      columns={columns}
      rows={rows}
      name={(each) => `${each.number}`}
      below="grid-lg"
    />
  );
}

function settingsOf({ texts }: Trial): string {
  const all = Object.entries(texts).map(([name, text]) => `${name} ${text}`);
  return all.join(", ") || "as the scenario has them";
}

function Runs({ trial }: { trial: Trial }) {
  return trial.runs.map((run, place) =>
    run.run === null ? (
      <span key={`${run.block}`}>cannot run: {run.reason}</span>
    ) : (
      <span key={run.run}>
        {place > 0 && ", "}
        <Link
          to={`/bench/runs/${run.run}`}
          aria-label={`Run of trial ${trial.number} in block ${run.block}`}
        >
          {run.outcome === "completed" ? count(run.block) : `${run.block} ${run.outcome}`}
        </Link>
      </span>
    ),
  );
}

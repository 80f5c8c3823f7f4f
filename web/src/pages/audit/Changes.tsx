import type { Schemas } from "../../api/client";
import { FactList } from "../../components/layout/Facts";
import { ListTable } from "../../components/tables/ListTable";
import { deed, fieldChanges } from "./changes";

/** An entry's details, and what it changed: before and after. */
export function Changes({ entry }: { entry: Schemas["EntryView"] }) {
  return (
    <>
      <FactList
        facts={[
          ["From", entry.origin],
          ...(entry.reason ? [["Why", entry.reason] as const] : []),
          ...(entry.status === null ? [] : [["Status", entry.status] as const]),
          ["Request", entry.request || "none: by the service itself"],
        ]}
      />
      {entry.changes.length === 0 && <p>No stored data was changed.</p>}
      {entry.changes.map((change) => (
        <section key={`${change.what} ${change.key}`}>
          <p>
            <strong>{change.what}</strong> {change.key} was {deed(change)}
          </p>
          <ListTable
            label={`${change.what} ${change.key}`}
            rows={fieldChanges(change)}
            name={(each) => each.field}
            columns={[
              { title: "Field", cell: (each) => <code>{each.field}</code> },
              {
                title: "Before",
                text: "breaks",
                cell: (each) => (each.before === null ? "–" : <del>{each.before}</del>),
              },
              {
                title: "After",
                text: "breaks",
                cell: (each) => (each.after === null ? "–" : <ins>{each.after}</ins>),
              },
            ]}
          />
        </section>
      ))}
    </>
  );
}

import { Button, Form, Modal, ModalBody, ModalFooter, ModalHeader } from "@patternfly/react-core";
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useId, useRef, useState } from "react";
import type { VmFilter } from "../../api/queries";
import { everyVm, type VmRow } from "../../api/tuning";
import { Alert } from "../../components/layout/Alert";
import { counted } from "../../components/text/format";
import { BulkFields } from "./BulkFields";
import { BulkResults } from "./BulkResults";
import { type Ended, inBulk, type Limits, type Result } from "./bulk";
import { type Draft, draft, orderOf } from "./draft";
import { type Kind, workOf } from "./orders";

/** Which VMs: those that were chosen, or all that a filter lets through, *count* of them. */
export type Chosen = { rows: readonly VmRow[] } | { filter: VmFilter; count: number };

const ACTIONS: Record<Kind, { title: string; act: string; done: string; warns?: string }> = {
  apply: { title: "Re-apply profiles to", act: "Re-apply", done: "as wanted" },
  verify: { title: "Verify", act: "Verify", done: "as wanted" },
  label: { title: "Label", act: "Change labels", done: "changed" },
  assign: { title: "Assign a profile to", act: "Assign", done: "assigned" },
  migrate: {
    title: "Migrate",
    act: "Migrate",
    done: "started",
    warns: "Each migration has its own preflight: a VM with a blocker stays where it is.",
  },
};
const AT_ONCE: Record<Kind, number> = { apply: 2, verify: 4, label: 4, assign: 1, migrate: 1 };

/** Asks what is to be done within which limits, does it, and sums up what became of each VM. */
export default function BulkDialog({
  kind,
  chosen,
  close,
}: {
  kind: Kind;
  chosen: Chosen;
  close: () => void;
}) {
  const id = useId();
  const queries = useQueryClient();
  const [typed, setTyped] = useState<Draft>(draft);
  const [results, setResults] = useState<readonly Result[]>([]);
  const [state, setState] = useState<"asking" | "running" | "ended">("asking");
  const [ended, setEnded] = useState<Ended>("");
  const [failure, setFailure] = useState<Error | null>(null);
  const stop = useRef(new AbortController());
  useEffect(() => {
    const { current } = stop;
    return () => current.abort();
  }, []);
  const total = "rows" in chosen ? chosen.rows.length : chosen.count;
  const { title, act, done, warns } = ACTIONS[kind];
  const order = orderOf(kind, typed);
  const limits: Limits = {
    most: typed.most,
    stopAfter: typed.stopAfter,
    atOnce: AT_ONCE[kind],
  };
  const start = async () => {
    if (order === null) return;
    stop.current = new AbortController();
    setResults([]);
    setFailure(null);
    setState("running");
    const vms = "rows" in chosen ? chosen.rows : everyVm(chosen.filter);
    const tell = (result: Result) => setResults((before) => [...before, result]);
    try {
      setEnded(await inBulk(vms, workOf(order), limits, tell, stop.current.signal));
    } catch (error) {
      setFailure(error as Error); // the list itself could not be read on
    }
    setState("ended");
    await queries.invalidateQueries({ queryKey: ["vm"] });
  };
  const running = state === "running";
  return (
    // Neither Escape nor the cross ends what is under way: Stop does.
    <Modal isOpen variant="large" aria-labelledby={id} {...(running ? {} : { onClose: close })}>
      <ModalHeader labelId={id} title={`${title} ${counted(total, "VM")}`} />
      <ModalBody tabIndex={0}>
        {state === "asking" ? (
          <Form onSubmit={(event) => event.preventDefault()}>
            {warns && <Alert isInline isPlain variant="info" title={warns} />}
            <BulkFields kind={kind} total={total} typed={typed} change={setTyped} />
          </Form>
        ) : (
          <BulkResults
            results={results}
            total={total}
            doneWord={done}
            running={running}
            ended={ended}
            limits={limits}
            failure={failure}
          />
        )}
      </ModalBody>
      <ModalFooter>
        {state === "asking" && (
          <>
            <Button isDisabled={order === null} onClick={() => void start()}>
              {act}
            </Button>
            <Button variant="link" onClick={close}>
              Cancel
            </Button>
          </>
        )}
        {running && (
          <Button variant="secondary" onClick={() => stop.current.abort()}>
            Stop
          </Button>
        )}
        {state === "ended" && <Button onClick={close}>Close</Button>}
      </ModalFooter>
    </Modal>
  );
}

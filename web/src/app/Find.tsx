import { Label, Modal, ModalBody, ModalHeader, TextInput } from "@patternfly/react-core";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { type KeyboardEvent, useEffect, useId, useRef, useState } from "react";
import { useNavigate } from "react-router";
import { search } from "../api/overview";
import { useSettled } from "../components/forms/settled";
import { offers } from "./finds";
import "./find.css";

const FIELD = "find-everything";
const QUIET_MS = 120; // of what is being typed

/** One search over VMs, hosts, profiles, migrations, campaigns, runs, pages and actions. */
export default function Find({
  ahead,
  close,
}: {
  /** What was typed before the field had the focus. */
  ahead: () => string;
  close: () => void;
}) {
  const [text, setText] = useState("");
  const [place, setPlace] = useState(0);
  const settled = useSettled(text.trim(), QUIET_MS);
  const found = useQuery({ ...search(settled), placeholderData: keepPreviousData });
  const items = text.trim() === "" ? [] : (found.data?.items ?? []);
  const offered = offers(text, items);
  const chosen = Math.min(place, offered.length - 1);
  const navigate = useNavigate();
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    list.current?.children[chosen]?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  const open = (to: string | undefined) => {
    if (to === undefined) return;
    navigate(to);
    close();
  };
  const pressed = (event: KeyboardEvent) => {
    const last = offered.length - 1;
    const moves: Record<string, number> = {
      ArrowDown: chosen < last ? chosen + 1 : 0,
      ArrowUp: chosen > 0 ? chosen - 1 : last,
    };
    const to = moves[event.key];
    if (to !== undefined) setPlace(to);
    else if (event.key === "Enter") open(offered[chosen]?.to);
    else return;
    event.preventDefault();
  };
  return (
    <Modal
      isOpen
      variant="medium"
      position="top"
      aria-labelledby={`${id}-title`}
      elementToFocus={`#${FIELD}`}
      onClose={close}
    >
      <ModalHeader title="Search" labelId={`${id}-title`} />
      <ModalBody>
        <TextInput
          id={FIELD}
          type="search"
          role="combobox"
          aria-label="VM, host, profile, migration, campaign, run, page or action"
          aria-expanded
          aria-controls={id}
          aria-autocomplete="list"
          aria-activedescendant={offered.length > 0 ? `${id}-${chosen}` : ""}
          placeholder="VM, host, profile, migration, campaign, run, page or action"
          value={text}
          onChange={(_event, typed) => {
            setText(typed);
            setPlace(0);
          }}
          onFocus={() => {
            const early = ahead();
            if (early) setText((typed) => early + typed);
          }}
          onKeyDown={pressed}
        />
        <div
          ref={list}
          id={id}
          role="listbox"
          tabIndex={-1}
          aria-label="Found"
          className="vt-found"
        >
          {offered.map((each, at) => (
            // biome-ignore lint/a11y/useKeyWithClickEvents: the field above has the keys
            <div
              key={`${each.kind} ${each.to}`}
              id={`${id}-${at}`}
              role="option"
              tabIndex={-1}
              aria-selected={at === chosen}
              onClick={() => open(each.to)}
            >
              <Label isCompact>{each.kind}</Label> {each.title} <small>{each.detail}</small>
            </div>
          ))}
        </div>
        {offered.length === 0 && !found.isFetching && <p>Nothing found.</p>}
      </ModalBody>
    </Modal>
  );
}

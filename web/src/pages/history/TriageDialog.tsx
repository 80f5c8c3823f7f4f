import {
  Button,
  Form,
  FormGroup,
  Modal,
  ModalBody,
  ModalFooter,
  ModalHeader,
  Radio,
  TextArea,
} from "@patternfly/react-core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { type FoundChange, type Triage, triageChange } from "../../api/trends";
import { Failure } from "../../components/layout/Async";

const CHOICES: readonly { value: Triage; label: string; description: string }[] = [
  { value: "open", label: "Not triaged", description: "Nobody has decided yet." },
  { value: "known", label: "Known", description: "Its cause is known." },
  { value: "accepted", label: "Accepted", description: "It is as it should be from now on." },
  { value: "to_fix", label: "To fix", description: "It is a fault." },
];

/** Decide about a change, with a note. */
export function TriageDialog({ change, close }: { change: FoundChange; close: () => void }) {
  const [triage, setTriage] = useState<Triage>(change.triage);
  const [note, setNote] = useState(change.note);
  const queries = useQueryClient();
  const save = useMutation({
    mutationFn: () => triageChange(change.id, triage, note),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ["run"] });
      close();
    },
  });
  return (
    <Modal isOpen variant="small" onClose={close} aria-labelledby="triage-title">
      <ModalHeader
        title="Triage this change"
        labelId="triage-title"
        description={`${change.metric} of ${change.scenario}: ${change.text}`}
      />
      <ModalBody>
        {save.error && <Failure error={save.error} inline />}
        <Form
          id="triage"
          onSubmit={(event) => {
            event.preventDefault();
            save.mutate();
          }}
        >
          <FormGroup role="radiogroup" label="Decision" fieldId="triage-decision">
            {CHOICES.map((each) => (
              <Radio
                key={each.value}
                id={`triage-${each.value}`}
                name="triage"
                label={each.label}
                description={each.description}
                isChecked={triage === each.value}
                onChange={() => setTriage(each.value)}
              />
            ))}
          </FormGroup>
          <FormGroup label="Note" fieldId="triage-note">
            <TextArea
              id="triage-note"
              value={note}
              maxLength={2000}
              onChange={(_event, text) => setNote(text)}
            />
          </FormGroup>
        </Form>
      </ModalBody>
      <ModalFooter>
        <Button type="submit" form="triage" isLoading={save.isPending} isDisabled={save.isPending}>
          Save
        </Button>
        <Button variant="link" onClick={close}>
          Cancel
        </Button>
      </ModalFooter>
    </Modal>
  );
}

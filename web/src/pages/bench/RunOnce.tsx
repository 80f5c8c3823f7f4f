import {
  ActionGroup,
  Button,
  Form,
  FormGroup,
  FormHelperText,
  HelperText,
  HelperTextItem,
  TextArea,
} from "@patternfly/react-core";
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useNavigate } from "react-router";
import { startRun } from "../../api/bench";
import type { Schemas } from "../../api/client";
import { Failure } from "../../components/layout/Async";
import { readChanges } from "./changes";
import { ProfileOrNone } from "./ProfileOrNone";
import { Section } from "./Section";
import { TestbedAndQemu } from "./TestbedAndQemu";

/** Order one run of a scenario; its page shows how far it is. */
export function RunOnce({
  scenario,
  title = "Run it once",
}: {
  scenario: Schemas["RunCreate"]["scenario"];
  title?: string;
}) {
  const [profile, setProfile] = useState("");
  const [where, setWhere] = useState<{ testbed: Schemas["Testbed"]; qemu: string }>({
    testbed: "direct",
    qemu: "",
  });
  const [changes, setChanges] = useState("");
  const navigate = useNavigate();
  const read = readChanges(changes);
  const start = useMutation({
    mutationFn: () =>
      startRun({
        scenario,
        changes: read.changes,
        ...where,
        ...(profile ? { profile } : {}),
        values: {},
        overrides: [],
      }),
    onSuccess: (run) => navigate(`/bench/runs/${run.id}`),
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (read.problem === "") start.mutate();
  };
  return (
    <Section title={title}>
      <Form onSubmit={submit} isWidthLimited>
        <FormGroup label="Profile" fieldId="run-profile">
          <ProfileOrNone id="run-profile" value={profile} choose={setProfile} />
        </FormGroup>
        <TestbedAndQemu id="run" {...where} choose={setWhere} />
        <FormGroup label="Changes, as JSON" fieldId="run-changes">
          <TextArea
            id="run-changes"
            value={changes}
            validated={read.problem ? "error" : "default"}
            placeholder={'{"warmup_s": 2, "workload": {"region_bytes": "256Mi"}}'}
            onChange={(_event, typed) => setChanges(typed)}
            resizeOrientation="vertical"
          />
          <FormHelperText>
            <HelperText>
              <HelperTextItem variant={read.problem ? "error" : "default"}>
                {read.problem || "Empty for no changes. A changed scenario gets its own name."}
              </HelperTextItem>
            </HelperText>
          </FormHelperText>
        </FormGroup>
        {start.error && <Failure error={start.error} inline />}
        <ActionGroup>
          <Button type="submit" isLoading={start.isPending} isDisabled={read.problem !== ""}>
            Run once
          </Button>
        </ActionGroup>
      </Form>
    </Section>
  );
}

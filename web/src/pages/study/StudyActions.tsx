import { Button, Flex, FlexItem } from "@patternfly/react-core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import type { Schemas } from "../../api/client";
import { cancelStudy, pauseStudy, resumeStudy } from "../../api/studies";
import { Confirm } from "../../components/dialogs/Confirm";
import { useToasts } from "../../components/dialogs/toasts";

export function StudyActions({ study: { id, state } }: { study: Schemas["StudyView"] }) {
  const [asked, setAsked] = useState(false);
  const toasts = useToasts();
  const pause = useMutation({
    mutationFn: () => pauseStudy(id),
    onSuccess: () => toasts.done("Study paused", "The current run continues to its end."),
    onError: (error) => toasts.failed("Pausing failed", error),
  });
  const resume = useMutation({
    mutationFn: () => resumeStudy(id),
    onSuccess: () => toasts.done("Study resumed"),
    onError: (error) => toasts.failed("Resuming failed", error),
  });
  const cancel = useMutation({
    mutationFn: () => cancelStudy(id),
    onSuccess: () => toasts.done("Study cancelled", "Completed runs are kept."),
    onError: (error) => toasts.failed("Cancelling failed", error),
  });
  return (
    <Flex>
      <FlexItem>
        {state === "paused" ? (
          <Button isLoading={resume.isPending} onClick={() => resume.mutate()}>
            Resume
          </Button>
        ) : (
          <Button variant="secondary" isLoading={pause.isPending} onClick={() => pause.mutate()}>
            Pause
          </Button>
        )}
      </FlexItem>
      <FlexItem>
        <Button variant="danger" isLoading={cancel.isPending} onClick={() => setAsked(true)}>
          Cancel study
        </Button>
      </FlexItem>
      {asked && (
        <Confirm
          title="Cancel this study?"
          action="Cancel study"
          danger
          close={() => setAsked(false)}
          confirm={() => cancel.mutate()}
        >
          It cannot be resumed. The run that is under way is ended, and what was measured stays.
        </Confirm>
      )}
    </Flex>
  );
}

import {
  Button,
  ClipboardCopy,
  Form,
  Modal,
  ModalBody,
  ModalFooter,
  ModalHeader,
} from "@patternfly/react-core";
import type { FormEvent, ReactNode } from "react";
import { Alert } from "../../components/layout/Alert";
import { Failure } from "../../components/layout/Async";

/** What was created: *secret* is shown now and never again. */
export interface Created {
  title: string;
  /** What the secret is called. */
  what: "token" | "secret";
  secret: string;
}

/**
 * A dialog with a form that creates something, and then its secret, this once.
 *
 * @param id begins the ids of its parts.
 * @param note what the secret is for.
 * @param ready whether enough was typed.
 */
export function SecretOnce({
  id,
  title,
  created,
  note,
  ready,
  create,
  close,
  children,
}: {
  id: string;
  title: string;
  created: Created | null;
  note?: string;
  ready: boolean;
  create: { isPending: boolean; error: Error | null; mutate: () => void };
  close: () => void;
  children: ReactNode;
}) {
  const submit = (event: FormEvent) => {
    event.preventDefault();
    create.mutate();
  };
  return (
    // A click outside must not lose what is shown once.
    <Modal
      isOpen
      variant="medium"
      aria-labelledby={`${id}-title`}
      onClose={close}
      {...(created ? { onEscapePress: () => {} } : {})}
    >
      <ModalHeader labelId={`${id}-title`} title={created?.title ?? title} />
      <ModalBody tabIndex={0}>
        {created ? (
          <>
            <Alert
              isInline
              variant="warning"
              title={`Copy the ${created.what} now: it is not shown again`}
            >
              {note}
            </Alert>
            <ClipboardCopy
              isReadOnly
              isCode
              hoverTip="Copy"
              clickTip="Copied"
              textAriaLabel={created.what === "token" ? "Token" : "Secret"}
            >
              {created.secret}
            </ClipboardCopy>
          </>
        ) : (
          <Form id={`${id}-form`} onSubmit={submit}>
            {children}
            {create.error && <Failure error={create.error} inline />}
          </Form>
        )}
      </ModalBody>
      <ModalFooter>
        {created ? (
          <Button onClick={close}>I have copied it</Button>
        ) : (
          <>
            <Button
              type="submit"
              form={`${id}-form`}
              isLoading={create.isPending}
              isDisabled={!ready}
            >
              Create
            </Button>
            <Button variant="link" onClick={close}>
              Cancel
            </Button>
          </>
        )}
      </ModalFooter>
    </Modal>
  );
}

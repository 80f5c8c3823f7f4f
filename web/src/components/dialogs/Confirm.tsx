import { Button, Modal, ModalBody, ModalFooter, ModalHeader } from "@patternfly/react-core";
import { type ReactNode, useId } from "react";

/**
 * Asks before something that cannot be undone, and says what will happen.
 *
 * @param impossible it has become so while it was asked; *children* say why.
 */
export function Confirm({
  title,
  action,
  danger = false,
  impossible = false,
  close,
  confirm,
  children,
}: {
  title: string;
  action: string;
  danger?: boolean;
  impossible?: boolean;
  close: () => void;
  confirm: () => void;
  children: ReactNode;
}) {
  const id = useId();
  return (
    <Modal isOpen variant="small" aria-labelledby={id} onClose={close}>
      <ModalHeader
        title={title}
        labelId={id}
        {...(danger ? { titleIconVariant: "warning" } : {})}
      />
      <ModalBody>{children}</ModalBody>
      <ModalFooter>
        <Button
          variant={danger ? "danger" : "primary"}
          isDisabled={impossible}
          onClick={() => {
            confirm();
            close();
          }}
        >
          {action}
        </Button>
        <Button variant="link" onClick={close}>
          Cancel
        </Button>
      </ModalFooter>
    </Modal>
  );
}

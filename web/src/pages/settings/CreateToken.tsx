import {
  Alert,
  Button,
  Checkbox,
  ClipboardCopy,
  Form,
  FormGroup,
  Modal,
  ModalBody,
  ModalFooter,
  ModalHeader,
  TextInput,
} from "@patternfly/react-core";
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { createToken } from "../../api/actions";
import { Failure } from "../../components/Async";
import { TextField } from "../../components/TextField";
import { asToken, type TypedToken } from "./token";

const NOTHING: TypedToken = { name: "", scopes: ["read"], hosts: "", selector: "", lastDay: "" };

/** A new token, and then its secret, this once. */
export function CreateToken({
  scopes,
  made,
  close,
}: {
  scopes: Readonly<Record<string, string>>;
  made: () => unknown;
  close: () => void;
}) {
  const [typed, setTyped] = useState(NOTHING);
  const create = useMutation({
    mutationFn: () => createToken(asToken(typed)),
    onSuccess: () => void made(),
  });
  const change = (part: Partial<TypedToken>) => setTyped((old) => ({ ...old, ...part }));
  const submit = (event: FormEvent) => {
    event.preventDefault();
    create.mutate();
  };
  const token = create.data;
  return (
    // A click beside it must not lose what is shown once.
    <Modal
      isOpen
      variant="medium"
      aria-labelledby="token-title"
      onClose={close}
      {...(token ? { onEscapePress: () => {} } : {})}
    >
      <ModalHeader
        labelId="token-title"
        title={token ? `The token ${token.name}` : "Create a token"}
      />
      <ModalBody tabIndex={0}>
        {token ? (
          <>
            <Alert isInline variant="warning" title="Copy the token now: it is not shown again" />
            <ClipboardCopy
              isReadOnly
              isCode
              hoverTip="Copy"
              clickTip="Copied"
              textAriaLabel="Token"
            >
              {token.token}
            </ClipboardCopy>
          </>
        ) : (
          <Form id="token-form" onSubmit={submit}>
            <FormGroup label="Name" isRequired fieldId="token-name">
              <TextInput
                id="token-name"
                isRequired
                value={typed.name}
                onChange={(_event, name) => change({ name })}
              />
            </FormGroup>
            <FormGroup role="group" label="Permissions" fieldId="token-scopes" isStack>
              {Object.entries(scopes).map(([scope, means]) => (
                <Checkbox
                  key={scope}
                  id={`scope-${scope}`}
                  label={scope}
                  description={means}
                  isChecked={typed.scopes.includes(scope)}
                  onChange={(_event, on) =>
                    change({
                      scopes: on
                        ? [...typed.scopes, scope]
                        : typed.scopes.filter((each) => each !== scope),
                    })
                  }
                />
              ))}
            </FormGroup>
            <TextField
              id="token-hosts"
              label="Only on these hosts"
              help="Comma-separated names; empty for all."
              value={typed.hosts}
              change={(hosts) => change({ hosts })}
            />
            <TextField
              id="token-selector"
              label="Only for VMs with these labels"
              help="As in tier=db,zone=a; empty for all."
              value={typed.selector}
              change={(selector) => change({ selector })}
            />
            <TextField
              id="token-expiry"
              label="Last day"
              help="Empty for no expiry. It also becomes invalid with its creator."
              type="date"
              value={typed.lastDay}
              change={(lastDay) => change({ lastDay })}
            />
            {create.error && <Failure error={create.error} inline />}
          </Form>
        )}
      </ModalBody>
      <ModalFooter>
        {token ? (
          <Button onClick={close}>I have copied it</Button>
        ) : (
          <>
            <Button
              type="submit"
              form="token-form"
              isLoading={create.isPending}
              isDisabled={typed.name.trim() === "" || typed.scopes.length === 0}
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

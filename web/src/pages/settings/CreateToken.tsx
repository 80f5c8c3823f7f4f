import { Checkbox, FormGroup, TextInput } from "@patternfly/react-core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { createToken } from "../../api/actions";
import { TextField } from "../../components/forms/TextField";
import { SecretOnce } from "./SecretOnce";
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
  const token = create.data;
  return (
    <SecretOnce
      id="token"
      title="Create a token"
      created={
        token ? { title: `The token ${token.name}`, what: "token", secret: token.token } : null
      }
      ready={typed.name.trim() !== "" && typed.scopes.length > 0}
      create={create}
      close={close}
    >
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
    </SecretOnce>
  );
}

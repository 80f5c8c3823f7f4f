import { FormGroup, FormHelperText, HelperText, HelperTextItem } from "@patternfly/react-core";
import type { ReactNode } from "react";
import type { ProblemItem } from "../../api/client";

/** A field with what is wrong with it, or what it is for. */
export function Field({
  label,
  id,
  required = false,
  group = false,
  problems = [],
  help = "",
  children,
}: {
  label: string;
  id: string;
  required?: boolean;
  /** It holds several controls, each with a name of its own. */
  group?: boolean;
  problems?: readonly ProblemItem[];
  help?: string;
  children: ReactNode;
}) {
  return (
    <FormGroup
      label={label}
      fieldId={id}
      isRequired={required}
      {...(group ? { role: "group" } : {})}
    >
      {children}
      <FormHelperText>
        <HelperText aria-live="polite">
          {problems.map((each) => (
            <HelperTextItem key={`${each.code} ${each.message}`} variant="error">
              {each.message}
              {each.remedy && `: ${each.remedy}`}
            </HelperTextItem>
          ))}
          {problems.length === 0 && help && <HelperTextItem>{help}</HelperTextItem>}
        </HelperText>
      </FormHelperText>
    </FormGroup>
  );
}

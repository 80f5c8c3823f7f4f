import {
  Button,
  Card,
  CardBody,
  CardFooter,
  CardTitle,
  FormGroup,
  FormSelect,
  FormSelectOption,
  FormSelectOptionGroup,
  Gallery,
  Stack,
} from "@patternfly/react-core";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { profileNames, templates } from "../../api/tuning";
import { Async } from "../../components/layout/Async";
import { rowsOf } from "../../components/tables/ListTable";
import type { Source } from "./typed";

/** What a new profile can begin with: a template, what others do, or a copy. */
export function Begin({ begin }: { begin: (source: Source, name: string) => void }) {
  const offered = useQuery(templates);
  const stored = useInfiniteQuery(profileNames);
  const profiles = stored.data ? rowsOf(stored.data) : [];
  return (
    <Async query={offered} lines={2}>
      {(all) => {
        const others = all.filter((each) => each.source !== "");
        const take = (value: string) => {
          const template = others.find((each) => `template ${each.name}` === value);
          const profile = profiles.find((each) => `profile ${each.name}` === value);
          if (template) begin(template, template.name);
          if (profile) begin(profile, `${profile.name}-copy`);
        };
        return (
          <FormGroup role="group" label="Begin with a template" fieldId="begin">
            <Stack hasGutter>
              <Gallery hasGutter minWidths={{ default: "14rem" }}>
                {all
                  .filter((each) => each.source === "")
                  .map((each) => (
                    <Card key={each.name} isCompact component="div">
                      <CardTitle component="h2">{each.title}</CardTitle>
                      <CardBody>
                        <small>{each.description}</small>
                      </CardBody>
                      <CardFooter>
                        <Button variant="link" isInline onClick={() => begin(each, each.name)}>
                          Begin with {each.title}
                        </Button>
                      </CardFooter>
                    </Card>
                  ))}
              </Gallery>
              <FormSelect
                id="begin"
                aria-label="Or begin with a policy of another manager, or with a copy of a profile"
                value=""
                onChange={(_event, value) => take(value)}
              >
                <FormSelectOption
                  value=""
                  label="Or a policy of another manager, or a copy of a profile"
                  isPlaceholder
                />
                <FormSelectOptionGroup label="Policies of other managers">
                  {others.map((each) => (
                    <FormSelectOption
                      key={each.name}
                      value={`template ${each.name}`}
                      label={each.title}
                    />
                  ))}
                </FormSelectOptionGroup>
                {profiles.length > 0 && (
                  <FormSelectOptionGroup label="A copy of">
                    {profiles.map((each) => (
                      <FormSelectOption
                        key={each.name}
                        value={`profile ${each.name}`}
                        label={each.name}
                      />
                    ))}
                  </FormSelectOptionGroup>
                )}
              </FormSelect>
            </Stack>
          </FormGroup>
        );
      }}
    </Async>
  );
}

import { FormSelect, FormSelectOption } from "@patternfly/react-core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { profiles } from "../api/queries";

/** Choose a profile; the empty one is the assigned one. */
export function ProfileChoice({
  id,
  value,
  choose,
}: {
  id: string;
  value: string;
  choose: (profile: string) => void;
}) {
  const list = useInfiniteQuery(profiles);
  const items = list.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <FormSelect id={id} value={value} onChange={(_event, chosen) => choose(chosen)}>
      <FormSelectOption value="" label="Assigned profile" />
      {items.map((each) => (
        <FormSelectOption key={each.name} value={each.name} label={each.name} />
      ))}
    </FormSelect>
  );
}

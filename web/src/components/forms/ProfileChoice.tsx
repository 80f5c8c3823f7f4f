import { FormSelect, FormSelectOption } from "@patternfly/react-core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { profiles } from "../../api/queries";

/** Choose a profile; *none* says what the empty one stands for. */
export function ProfileChoice({
  id,
  value,
  none = "Assigned profile",
  choose,
}: {
  id: string;
  value: string;
  none?: string;
  choose: (profile: string) => void;
}) {
  const list = useInfiniteQuery(profiles);
  const items = list.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <FormSelect id={id} value={value} onChange={(_event, chosen) => choose(chosen)}>
      <FormSelectOption value="" label={none} />
      {items.map((each) => (
        <FormSelectOption key={each.name} value={each.name} label={each.name} />
      ))}
    </FormSelect>
  );
}

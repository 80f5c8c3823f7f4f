import { FormSelect, FormSelectOption } from "@patternfly/react-core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { profiles } from "../../api/queries";

/** Choose a profile, or none: then the scenario's own values hold. */
export function ProfileOrNone({
  id,
  label,
  value,
  choose,
}: {
  id: string;
  label?: string;
  value: string;
  choose: (profile: string) => void;
}) {
  const list = useInfiniteQuery(profiles);
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = list;
  useEffect(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage]);
  const items = list.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <FormSelect
      id={id}
      {...(label ? { "aria-label": label } : {})}
      value={value}
      onChange={(_event, chosen) => choose(chosen)}
    >
      <FormSelectOption value="" label="None: the scenario's values" />
      {items.map((each) => (
        <FormSelectOption key={each.name} value={each.name} label={each.name} />
      ))}
    </FormSelect>
  );
}

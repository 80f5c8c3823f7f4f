import { Button } from "@patternfly/react-core";

/** Fetches the next page of a list; nothing when there is none. */
export function More({
  list,
}: {
  list: { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => unknown };
}) {
  if (!list.hasNextPage) return null;
  return (
    <Button variant="link" isLoading={list.isFetchingNextPage} onClick={() => list.fetchNextPage()}>
      Show more
    </Button>
  );
}

/** Loading, empty and error states, the same on every page. */
import {
  AlertActionLink,
  Bullseye,
  EmptyState,
  EmptyStateBody,
  EmptyStateFooter,
  Skeleton,
  Stack,
  StackItem,
} from "@patternfly/react-core";
import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { ApiError } from "../../api/client";
import { Said } from "../text/Said";
import { Alert } from "./Alert";

/** Show *children* with a query's data, or why there is none yet. Old data stays while new loads. */
export function Async<T>({
  query,
  children,
  lines = 4,
}: {
  query: Pick<UseQueryResult<T>, "data" | "error" | "isPending" | "refetch">;
  children: (data: T) => ReactNode;
  lines?: number;
}) {
  if (query.data !== undefined) {
    return (
      <>
        {query.error && <Failure error={query.error} again={() => void query.refetch()} inline />}
        {children(query.data)}
      </>
    );
  }
  if (query.error) return <Failure error={query.error} again={() => void query.refetch()} />;
  return (
    <Stack hasGutter aria-busy="true" aria-label="Loading">
      {Array.from({ length: lines }, (_, line) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the lines are all alike
        <StackItem key={line}>
          <Skeleton screenreaderText={line === 0 ? "Loading" : ""} width={`${95 - line * 12}%`} />
        </StackItem>
      ))}
    </Stack>
  );
}

/** An error of the service in its own words, with the remedy. */
export function Failure({
  error,
  again,
  inline = false,
}: {
  error: Error;
  again?: () => void;
  inline?: boolean;
}) {
  const problems = error instanceof ApiError ? error.problems : [];
  const alert = (
    <Alert
      variant="danger"
      isInline
      title={<Said>{error.message}</Said>}
      actionLinks={again && <AlertActionLink onClick={again}>Try again</AlertActionLink>}
    >
      {problems.map((problem) => (
        <p key={`${problem.field} ${problem.code}`}>
          {problem.message !== error.message && <Said>{`${problem.message}. `}</Said>}
          {problem.remedy && (
            <em>
              <Said>{problem.remedy}</Said>
            </em>
          )}
        </p>
      ))}
    </Alert>
  );
  return inline ? alert : <Stack hasGutter>{alert}</Stack>;
}

/** Nothing there yet, and what would put something there; *whole*: it is all that the page has. */
export function Empty({
  title,
  children,
  action,
  whole = false,
}: {
  title: string;
  children?: ReactNode;
  action?: ReactNode;
  whole?: boolean;
}) {
  return (
    <Bullseye>
      <EmptyState titleText={title} headingLevel={whole ? "h1" : "h2"} variant="sm">
        <EmptyStateBody>{children}</EmptyStateBody>
        {action && <EmptyStateFooter>{action}</EmptyStateFooter>}
      </EmptyState>
    </Bullseye>
  );
}

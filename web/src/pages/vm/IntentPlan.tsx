import {
  Button,
  Card,
  CardBody,
  CardHeader,
  CardTitle,
  List,
  ListItem,
  Stack,
  StackItem,
} from "@patternfly/react-core";
import { Link } from "react-router";
import type { Schemas } from "../../api/client";
import { differences, type Stated } from "../../components/forms/intent";
import { TunableName } from "../../components/labels/TunableName";
import { Alert } from "../../components/layout/Alert";
import { Failure } from "../../components/layout/Async";
import { type ColumnOf, ListTable } from "../../components/tables/ListTable";
import { counted } from "../../components/text/format";

type Found = Schemas["IntentPlanView"];
type Choice = Schemas["ChoiceView"];

const COLUMNS: readonly ColumnOf<Choice>[] = [
  { title: "Chosen", cell: (each) => <TunableName name={each.tunable} /> },
  { title: "Value", text: "short", cell: (each) => each.value.text },
  { title: "Why", cell: (each) => each.reason },
];
const MOST_LINKED = 5;

/** Whether an intent can be kept, asked for by a button since the guest is measured for it. */
export function IntentPlan({
  text,
  found,
  asking,
  error,
  ask,
  take,
}: {
  /** The intent in words, with where it is from; empty for the one that is typed. */
  text: string;
  found: Found | null;
  asking: boolean;
  error: Error | null;
  ask: () => void;
  take: (nearest: Stated) => void;
}) {
  return (
    <Card isCompact component="section" aria-label="Intent">
      <CardHeader
        actions={{
          actions: (
            <Button
              variant="secondary"
              size="sm"
              isLoading={asking}
              isDisabled={asking}
              onClick={ask}
            >
              Can it be kept?
            </Button>
          ),
        }}
      >
        <CardTitle component="h2">Intent</CardTitle>
      </CardHeader>
      <CardBody>
        <Stack hasGutter>
          {text && <StackItem>{text}.</StackItem>}
          {asking && <StackItem>Measuring how the guest dirties its memory: up to 20 s.</StackItem>}
          {error && (
            <StackItem>
              <Failure error={error} inline />
            </StackItem>
          )}
          {found && !asking && <Told found={found} take={take} />}
          {!found && !asking && !error && (
            <StackItem>
              The guest is measured before it migrates, settings are chosen, and the migration is
              steered.
            </StackItem>
          )}
        </Stack>
      </CardBody>
    </Card>
  );
}

function Told({ found, take }: { found: Found; take: (nearest: Stated) => void }) {
  return (
    <>
      <StackItem>
        <Alert
          isInline
          isLiveRegion
          variant={found.kept ? "success" : found.kept === null ? "info" : "warning"}
          title={sentence(found)}
        >
          <Rests on={found} />
        </Alert>
      </StackItem>
      {found.nearest.length > 0 && (
        <StackItem>
          <p>It can be kept with:</p>
          <List isPlain aria-label="Intents that can be kept">
            {found.nearest.map((near) => (
              <ListItem key={near.difference}>
                <Button variant="secondary" size="sm" onClick={() => take(near.intent)}>
                  {offer(differences(found.stated, near.intent) || near.difference)}
                </Button>
              </ListItem>
            ))}
          </List>
        </StackItem>
      )}
      {found.kept === false && found.nearest.length === 0 && (
        <StackItem>Changing one goal or allowing one more means is not enough.</StackItem>
      )}
      {found.choices.length > 0 && (
        <StackItem>
          <ListTable
            label="Chosen settings"
            columns={COLUMNS}
            rows={found.choices}
            name={(each) => each.tunable}
            below="grid-lg"
          />
        </StackItem>
      )}
      {found.pinned.length > 0 && (
        <StackItem>Pinned, as you or the profile set them: {found.pinned.join(", ")}.</StackItem>
      )}
    </>
  );
}

/** "Take within 95 s"; "Allow post-copy" where nothing else differs. */
const offer = (words: string) =>
  /^[^,]+ allowed$/.test(words) ? `Allow ${words.replace(/ allowed$/, "")}` : `Take ${words}`;

/** "Will be kept: expected to end after 12 s"; and that it would be refused. */
export function sentence({ forecast, refused }: Pick<Found, "forecast" | "refused">): string {
  const said = forecast.charAt(0).toUpperCase() + forecast.slice(1);
  return refused ? `${said}. It would be refused.` : said;
}

function Rests({ on: { runs, history } }: { on: Found }) {
  if (runs === null) return null;
  if (runs === 0) return "Network speed not measured; the bandwidth limit is assumed.";
  return (
    <>
      Network speed taken from {counted(runs, "earlier migration")}:{" "}
      {history.slice(0, MOST_LINKED).map((id, place) => (
        <span key={id}>
          {place > 0 && ", "}
          <Link to={`/migrations/${id}`}>{id.slice(0, 8)}</Link>
        </span>
      ))}
      {history.length > MOST_LINKED && `, and ${history.length - MOST_LINKED} more`}
    </>
  );
}

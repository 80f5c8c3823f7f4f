import { Grid, GridItem, PageSection } from "@patternfly/react-core";
import { useQuery } from "@tanstack/react-query";
import { proven } from "../api/client";
import { health, session } from "../api/queries";
import { Moment } from "../components/labels/Moment";
import { Async } from "../components/layout/Async";
import { type Fact, Facts } from "../components/layout/Facts";
import { PageHead } from "../components/layout/PageHead";
import { count } from "../components/text/format";
import { Browsers } from "./settings/Browsers";
import { Rights } from "./settings/Rights";
import { Tokens } from "./settings/Tokens";
import { Webhooks } from "./settings/Webhooks";

export default function Settings() {
  const service = useQuery(health);
  const own = useQuery(session);
  const isAdmin = own.data?.rights.scopes.includes("admin") ?? false;
  const reach = own.data?.rights;
  const everywhere = reach?.hosts === null && Object.keys(reach.selector).length === 0;
  return (
    <>
      <PageHead title="Settings" />
      <PageSection>
        <Grid hasGutter>
          <GridItem md={6}>
            <Async query={own}>
              {(data) => (
                <Facts
                  title="You"
                  facts={[
                    ["Name", data.who.name],
                    ["Authenticated by", KNOWN_BY[data.who.kind]],
                    ["Permissions", <Rights key="rights" rights={data.rights} />],
                    ["Signed in", data.signed_in ? "by this browser's cookie" : "by each request"],
                    [
                      "Until",
                      data.expires_at ? <Moment key="until" at={data.expires_at} /> : "never",
                    ],
                  ]}
                />
              )}
            </Async>
          </GridItem>
          <GridItem md={6}>
            <Async query={service}>
              {(data) => {
                const facts: Fact[] = [
                  ["vmtune", data.version],
                  ["Database schema", data.schema_revision],
                  ["Hosts", count(data.hosts)],
                  ["Running migrations", count(data.jobs_running)],
                  [
                    "API",
                    <a key="api" href={proven("/api/v1/docs")}>
                      API reference
                    </a>,
                  ],
                ];
                return <Facts title="Service" facts={facts} />;
              }}
            </Async>
          </GridItem>
          {isAdmin && (
            <GridItem>
              <Tokens />
            </GridItem>
          )}
          {isAdmin && everywhere && (
            <GridItem>
              <Browsers />
            </GridItem>
          )}
          {isAdmin && everywhere && (
            <GridItem>
              <Webhooks />
            </GridItem>
          )}
        </Grid>
      </PageSection>
    </>
  );
}

const KNOWN_BY = {
  user: "a user of this machine",
  token: "a token",
  oidc: "the identity provider",
  service: "the service itself",
  nobody: "nobody",
} as const;

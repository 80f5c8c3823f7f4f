import { PageSection } from "@patternfly/react-core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams, useSearchParams } from "react-router";
import { profile, tunables } from "../api/queries";
import { Async } from "../components/layout/Async";
import { PageHead } from "../components/layout/PageHead";
import { ProfileForm } from "./profile/ProfileForm";

/** Creates a profile, `?from=` a copy of another one, or changes one into its next revision. */
export default function ProfileEditor() {
  const { name } = useParams();
  const [search] = useSearchParams();
  const from = name ?? search.get("from") ?? "";
  const table = useQuery(tunables);
  const found = useQuery({ ...profile(from), enabled: from !== "" });
  const navigate = useNavigate();
  const trail = [{ to: "/profiles", text: "Profiles" }];
  if (name !== undefined) trail.push({ to: `/profiles/${name}`, text: name });
  const saved = (stored: string, vm: string | null) =>
    navigate(vm === null ? `/profiles/${stored}` : `/vms/${vm}`);
  return (
    <>
      <PageHead title={name === undefined ? "Create profile" : `Edit ${name}`} trail={trail} />
      <PageSection>
        <Async query={table}>
          {(rows) =>
            from === "" ? (
              <ProfileForm tunables={rows} old={null} begun={null} saved={saved} />
            ) : (
              <Async query={found}>
                {(there) => (
                  <ProfileForm
                    key={from}
                    tunables={rows}
                    old={name === undefined ? null : there}
                    begun={name === undefined ? there : null}
                    saved={saved}
                  />
                )}
              </Async>
            )
          }
        </Async>
      </PageSection>
    </>
  );
}

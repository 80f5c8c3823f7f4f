import { PageSection } from "@patternfly/react-core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams } from "react-router";
import { profile, tunables } from "../api/queries";
import { Async } from "../components/Async";
import { PageHead } from "../components/PageHead";
import { ProfileForm } from "./profile/ProfileForm";

/** Creates a profile, or changes one into its next revision. */
export default function ProfileEditor() {
  const { name } = useParams();
  const table = useQuery(tunables);
  const found = useQuery({ ...profile(name ?? ""), enabled: name !== undefined });
  const navigate = useNavigate();
  const trail = [{ to: "/profiles", text: "Profiles" }];
  if (name !== undefined) trail.push({ to: `/profiles/${name}`, text: name });
  const saved = (stored: string) => navigate(`/profiles/${stored}`);
  return (
    <>
      <PageHead title={name === undefined ? "Create profile" : `Edit ${name}`} trail={trail} />
      <PageSection>
        <Async query={table}>
          {(rows) =>
            name === undefined ? (
              <ProfileForm tunables={rows} old={null} saved={saved} />
            ) : (
              <Async query={found}>
                {(old) => <ProfileForm tunables={rows} old={old} saved={saved} />}
              </Async>
            )
          }
        </Async>
      </PageSection>
    </>
  );
}

import { Button } from "@patternfly/react-core";
import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { signOut } from "../api/actions";
import { session } from "../api/queries";
import { useConnection } from "../components/live/live";

/** Who is signed in, with the way out. Nothing where no cookie signs anybody in. */
export function SignedIn() {
  const connection = useConnection();
  const { data, refetch } = useQuery(session);
  // A stream that is lost may have ended with the session: then this leads to the form to sign in.
  useEffect(() => {
    if (connection === "lost") void refetch();
  }, [connection, refetch]);
  if (!data?.signed_in) return null;
  const leave = () => signOut().finally(() => globalThis.location.assign("/"));
  return (
    <Button variant="link" onClick={leave}>
      Sign out<span className="vt-wide"> {data.who.name}</span>
    </Button>
  );
}

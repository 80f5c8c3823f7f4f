import { ClipboardCopy, ClipboardCopyVariant } from "@patternfly/react-core";

/** The command line that tells how virsh would migrate with the same values. */
export function Virsh({
  vm,
  destination,
  profile,
}: {
  vm: string;
  destination: string;
  profile: string;
}) {
  const command = [
    "vmtune virsh-args",
    vm,
    `--to ${destination}`,
    ...(profile ? [`--profile ${profile}`] : []),
  ].join(" ");
  return (
    <>
      <p>The equal virsh command is printed by</p>
      <ClipboardCopy
        isReadOnly
        isCode
        variant={ClipboardCopyVariant.inlineCompact}
        hoverTip="Copy"
        clickTip="Copied"
        copyAriaLabel="Copy the command"
      >
        {command}
      </ClipboardCopy>
    </>
  );
}

import { Button, Flex, FlexItem } from "@patternfly/react-core";

/** Files to save, or to open in a tab of their own. */
export function FileLinks({
  label,
  files,
}: {
  label: string;
  files: readonly { text: string; href: string; opens?: boolean; name?: string }[];
}) {
  return (
    <Flex component="ul" aria-label={label} style={{ listStyle: "none", margin: 0, padding: 0 }}>
      {files.map(({ text, href, opens, name }) => (
        <FlexItem component="li" key={text}>
          <Button
            component="a"
            variant="link"
            isInline
            href={href}
            {...(opens ? { target: "_blank", rel: "noreferrer" } : { download: name ?? "" })}
          >
            {text}
          </Button>
        </FlexItem>
      ))}
    </Flex>
  );
}

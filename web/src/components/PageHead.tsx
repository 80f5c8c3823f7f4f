import {
  Breadcrumb,
  BreadcrumbItem,
  Content,
  Flex,
  FlexItem,
  PageSection,
  Title,
} from "@patternfly/react-core";
import { type ReactNode, useEffect } from "react";
import { Link } from "react-router";

/** The head of every page: where one is, its title, what can be done. Names the browser's tab. */
export function PageHead({
  title,
  trail = [],
  actions,
  children,
}: {
  title: string;
  trail?: readonly { to: string; text: string }[];
  actions?: ReactNode;
  children?: ReactNode;
}) {
  useEffect(() => {
    document.title = `${title} · vmtune`;
  }, [title]);
  return (
    <PageSection>
      {trail.length > 0 && (
        <Breadcrumb>
          {trail.map(({ to, text }) => (
            <BreadcrumbItem key={to}>
              <Link to={to}>{text}</Link>
            </BreadcrumbItem>
          ))}
          <BreadcrumbItem isActive>{title}</BreadcrumbItem>
        </Breadcrumb>
      )}
      <Flex justifyContent={{ default: "justifyContentSpaceBetween" }}>
        <FlexItem>
          <Title headingLevel="h1">{title}</Title>
        </FlexItem>
        {actions && <FlexItem>{actions}</FlexItem>}
      </Flex>
      {children && <Content component="p">{children}</Content>}
    </PageSection>
  );
}

import {
  Breadcrumb,
  BreadcrumbItem,
  Content,
  Flex,
  FlexItem,
  PageBreadcrumb,
  PageSection,
  Title,
} from "@patternfly/react-core";
import { type ReactNode, useEffect } from "react";
import { Link } from "react-router";

export interface Head {
  title: string;
  trail?: readonly { to: string; text: string }[];
  actions?: ReactNode;
  children?: ReactNode;
}

/** The head of every page: where one is, its title, what can be done. Names the browser's tab. */
export function PageHead({ title, trail = [], actions, children }: Head) {
  useEffect(() => {
    document.title = `${title} · vmtune`;
  }, [title]);
  return (
    <>
      {trail.length > 0 && (
        <PageBreadcrumb>
          <Breadcrumb>
            {trail.map(({ to, text }) => (
              <BreadcrumbItem key={to}>
                <Link to={to}>{text}</Link>
              </BreadcrumbItem>
            ))}
            <BreadcrumbItem isActive>{title}</BreadcrumbItem>
          </Breadcrumb>
        </PageBreadcrumb>
      )}
      <PageSection>
        <Flex justifyContent={{ default: "justifyContentSpaceBetween" }}>
          <FlexItem>
            <Title headingLevel="h1">{title}</Title>
          </FlexItem>
          {actions && <FlexItem>{actions}</FlexItem>}
        </Flex>
        {children && <Content component="p">{children}</Content>}
      </PageSection>
    </>
  );
}

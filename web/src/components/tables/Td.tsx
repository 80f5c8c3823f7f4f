import { Td as Plain, type TdProps } from "@patternfly/react-table";
import { unbroken } from "../text/format";

/** A cell of a table. On a narrow screen, where each row is a card, a cell is a grid of its label
 * and what it holds: that has to be one element, or its parts are spread over the grid. Numbers stay with their units. */
export function Td({ children: given, ...props }: TdProps) {
  const children = typeof given === "string" ? unbroken(given) : given;
  return <Plain {...props}>{props.dataLabel ? <div>{children}</div> : children}</Plain>;
}

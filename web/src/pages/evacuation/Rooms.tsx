import { Table, Tbody, Th, Thead, Tr } from "@patternfly/react-table";
import { Link } from "react-router";
import type { Schemas } from "../../api/client";
import { Td } from "../../components/tables/Td";
import { bytes } from "../../components/text/format";

/** What the images that are copied along leave of the room at their destinations. */
export function Rooms({ rooms }: { rooms: readonly Schemas["RoomLeftView"][] }) {
  return (
    <Table aria-label="Room for images" variant="compact">
      <Thead>
        <Tr>
          <Th>Host</Th>
          <Th>Folder of images</Th>
          <Th>Free</Th>
          <Th>For other copies</Th>
          <Th>For these VMs</Th>
          <Th>Left</Th>
        </Tr>
      </Thead>
      <Tbody>
        {rooms.map((room) => (
          <Tr key={`${room.host} ${room.folders.join()}`}>
            <Td dataLabel="Host">
              <Link to={`/hosts/${encodeURIComponent(room.host)}`}>{room.host}</Link>
            </Td>
            <Td dataLabel="Folder of images">{room.folders.join(", ")}</Td>
            <Td dataLabel="Free">{bytes(room.free_bytes)}</Td>
            <Td dataLabel="For other copies">
              {room.promised_bytes > 0 ? bytes(room.promised_bytes) : "–"}
            </Td>
            <Td dataLabel="For these VMs">{bytes(room.needed_bytes)}</Td>
            <Td dataLabel="Left">{bytes(room.left_bytes)}</Td>
          </Tr>
        ))}
      </Tbody>
    </Table>
  );
}

/** Lines of JSON that a native thread writes to a descriptor. */
import { Socket } from "node:net";

/**
 * Reads to the end. The descriptor belongs to this function from now on. A broken socket ends the stream; what
 * has been read counts.
 */
export const readJsonLines = async <Line>(fd: number, onLine: (line: Line) => void): Promise<void> => {
  const socket = new Socket({ fd, readable: true, writable: false });
  socket.setEncoding("utf8");
  let rest = "";
  try {
    for await (const chunk of socket) {
      const lines = (rest + String(chunk)).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) onLine(JSON.parse(line) as Line);
    }
  } catch {
    // See above.
  }
};

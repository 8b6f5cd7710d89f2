/**
 * Passes TCP connections on to port `TO` of this machine, and each byte `DELAY_MS` later, in both directions: a target
 * that is so far away. The handshake of TCP is the proxy's own and takes no time; with `HANDSHAKE=1` the first bytes of
 * a connection are held for the round trip that it would take.
 */
import { connect, createServer, type Socket } from "node:net";
import { now } from "./time.ts";

const to = Number(process.env["TO"]);
const delayMs = Number(process.env["DELAY_MS"] ?? 10);
const handshakeMs = process.env["HANDSHAKE"] === "1" ? 2 * delayMs : 0;
/** Timers fire up to a millisecond late. */
const EARLY_MS = 0.5;

const server = createServer({ noDelay: true }, (near) => {
  const far = connect({ port: to, host: "127.0.0.1", noDelay: true });
  for (const socket of [near, far]) socket.on("error", () => socket.destroy());
  passOn(near, far, now() + handshakeMs);
  passOn(far, near, 0);
});
server.listen(0, "127.0.0.1", () => {
  const address = server.address();
  console.log(typeof address === "object" && address !== null ? address.port : 0);
});

function passOn(from: Socket, onto: Socket, notBeforeMs: number): void {
  const held: { readonly dueMs: number; readonly pass: () => void }[] = [];
  const release = () => {
    while ((held[0]?.dueMs ?? Infinity) <= now() + EARLY_MS) held.shift()?.pass();
    const next = held[0];
    if (next !== undefined) setTimeout(release, next.dueMs - now());
  };
  const hold = (pass: () => void) => {
    const dueMs = Math.max(now(), notBeforeMs) + delayMs;
    held.push({ dueMs, pass });
    if (held.length === 1) setTimeout(release, dueMs - now());
  };
  from.on("data", (bytes) => hold(() => onto.write(bytes)));
  from.on("end", () => hold(() => onto.end()));
  from.on("close", () => hold(() => onto.destroy()));
}

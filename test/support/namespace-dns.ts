import { createSocket } from "node:dgram";
import { once } from "node:events";

/** What the scripted server says to one question. */
export type DnsAnswer =
  | { readonly kind: "records"; readonly records: readonly DnsRecord[] }
  | { readonly kind: "code"; readonly code: number }
  | { readonly kind: "silence" };

export type DnsRecord =
  | { readonly type: "A"; readonly name?: string; readonly address: string }
  | { readonly type: "AAAA"; readonly name?: string; readonly bytes: readonly number[] }
  | { readonly type: "CNAME"; readonly name?: string; readonly alias: string };

export type DnsScript = (name: string, type: "A" | "AAAA") => DnsAnswer;

export const SERVFAIL: DnsAnswer = { kind: "code", code: 2 };
export const NXDOMAIN: DnsAnswer = { kind: "code", code: 3 };
export const SILENCE: DnsAnswer = { kind: "silence" };
/** The name exists and has no address. `Bun.dns.lookup` keeps this answer for an hour, whatever its SOA says. */
export const NOTHING: DnsAnswer = { kind: "records", records: [] };

/** Records that name these addresses, for a question about IPv4. */
export function a(...addresses: readonly string[]): DnsAnswer {
  return { kind: "records", records: addresses.map((address) => ({ type: "A", address })) };
}

const TYPES = { A: 1, CNAME: 5, AAAA: 28 } as const;

/** A name server, on 127.0.0.1:53 unless another address is given, that says what the script says, every answer with a time to live of 0 (RFC 1035). */
export async function serveDns(script: DnsScript, address = "127.0.0.1") {
  let asked = 0;
  const socket = createSocket("udp4");
  socket.on("message", (query, from) => {
    asked += 1;
    const reply = replyTo(query, script);
    if (reply !== null) socket.send(reply, from.port, from.address);
  });
  socket.bind(53, address);
  await once(socket, "listening");
  return {
    /** Questions so far. */
    asked: () => asked,
    async [Symbol.asyncDispose]() {
      socket.close();
      await once(socket, "close");
    },
  };
}

function replyTo(query: Buffer, script: DnsScript): Buffer | null {
  const { name, end } = readName(query);
  const type = query.readUInt16BE(end);
  const answer = type === TYPES.A || type === TYPES.AAAA ? script(name, type === TYPES.A ? "A" : "AAAA") : NOTHING;
  if (answer.kind === "silence") return null;
  const records = answer.kind === "records" ? answer.records : [];
  const head = Buffer.alloc(12);
  query.copy(head, 0, 0, 2);
  // A response, recursion desired and available, and the code.
  head.writeUInt16BE(0x8180 | (answer.kind === "code" ? answer.code : 0), 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(records.length, 6);
  return Buffer.concat([head, query.subarray(12, end + 4), ...records.map((record) => recordOf(record, name))]);
}

function readName(query: Buffer): { name: string; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join("."), end: at + 1 };
}

function recordOf(record: DnsRecord, asked: string): Buffer {
  const data = dataOf(record);
  const fixed = Buffer.alloc(10);
  fixed.writeUInt16BE(TYPES[record.type], 0);
  fixed.writeUInt16BE(1, 2);
  fixed.writeUInt16BE(data.length, 8);
  return Buffer.concat([nameOf(record.name ?? asked), fixed, data]);
}

function dataOf(record: DnsRecord): Buffer {
  if (record.type === "A") return Buffer.from(record.address.split(".").map(Number));
  return record.type === "AAAA" ? Buffer.from(record.bytes) : nameOf(record.alias);
}

function nameOf(name: string): Buffer {
  const labels = name
    .split(".")
    .map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label, "latin1")]));
  return Buffer.concat([...labels, Buffer.alloc(1)]);
}

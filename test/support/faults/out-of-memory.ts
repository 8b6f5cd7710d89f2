import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync } from "node:zlib";
import { type Behaviour, answers, floods, openRawTarget } from "../raw-target.ts";
import { Service } from "../service.ts";
import { broken, type FaultReport } from "./report.ts";

const MEMORY_BYTES = 200 * 1_048_576;
const GROUPS = "/sys/fs/cgroup";

/** A memory group of our own, of either version of control groups; null where this machine lets us make none. */
export function memoryGroup(): { readonly join: string; readonly peak: () => number; readonly end: () => void } | null {
  const isOld = existsSync(join(GROUPS, "memory"));
  const path = join(GROUPS, isOld ? "memory" : "", `outgate-${process.pid}-${Math.random().toString(36).slice(2)}`);
  try {
    mkdirSync(path);
    writeFileSync(join(path, isOld ? "memory.limit_in_bytes" : "memory.max"), String(MEMORY_BYTES));
  } catch {
    return null;
  }
  const peak = join(path, isOld ? "memory.max_usage_in_bytes" : "memory.peak");
  return {
    join: join(path, "cgroup.procs"),
    peak: () => Number(readFileSync(peak, "utf8")),
    end: () => rmdirSync(path),
  };
}

/** Bodies without end and bombs, so many at a time, for a service that may have 200 MB in all (F22). */
export async function outOfMemory(actions: number): Promise<FaultReport> {
  const group = memoryGroup();
  if (group === null) return { figures: { skipped: "no memory group" }, problems: [] };
  const bomb = brotliCompressSync(Buffer.alloc(64 * 1_048_576));
  const head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n";
  const kinds: readonly Behaviour[] = [
    floods(head, Buffer.alloc(65_536, "a")),
    floods(`HTTP/1.1 200 OK\r\nContent-Length: ${2 ** 31}\r\n\r\n`, Buffer.alloc(65_536, "b")),
    answers(200, bomb, ["Content-Encoding: br"]),
    answers(200, "é".repeat(200_000)),
    floods("HTTP/1.1 200 OK\r\n", "X-A: b\r\n".repeat(1_000)),
  ];
  let called = 0;
  await using target = await openRawTarget((socket, request) => {
    called += 1;
    kinds[called % kinds.length]?.(socket, request);
  });
  await using service = new Service({
    wrapper: ["sh", "-c", 'echo $$ > "$0" && exec "$@"', group.join],
    env: { RATE_LIMIT_PER_SECOND: "0", RETRY_BASE_MS: "1", RETRY_CAP_MS: "1" },
  });
  await service.ready();
  const created = await Promise.all(
    Array.from({ length: actions }, () => service.create({ url: target.url(), retries: 2 })),
  );
  const finals = await Promise.all(created.map(({ id }) => service.final(id)));
  const ended = finals.filter(({ status }) => status === "completed" || status === "failed");
  const isAlive = service.process.exitCode === null && service.process.signalCode === null;
  const peakBytes = group.peak();
  await service.end("SIGKILL");
  group.end();
  return {
    figures: { actions, ended: ended.length, called, peakMB: Math.round(peakBytes / 1_048_576) },
    problems: broken({
      "targets alone do not kill it": isAlive,
      "every action ends": ended.length === actions,
    }),
  };
}

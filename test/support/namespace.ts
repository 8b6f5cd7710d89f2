import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Set for what runs inside: network traffic of tests that name foreign addresses must not leave the machine. */
const INSIDE = "OUTGATE_TEST_NAMESPACE";

/** Whether this process has a network of its own: only `lo`, and a name server on 127.0.0.1. */
export function isInside(): boolean {
  return process.env[INSIDE] === "1";
}

/** Whether this machine lets us make one (root, or a kernel that allows it to others). */
export function isPossible(): boolean {
  return Bun.spawnSync(["unshare", "-n", "-m", "true"], { stderr: "ignore" }).exitCode === 0;
}

/**
 * Runs a command in a network and mount namespace that has only loopback; /etc/resolv.conf names 127.0.0.1, and
 * /etc/hosts knows nobody. Output of both kinds comes back together.
 */
export async function runInside(command: readonly string[], timeoutMs: number) {
  const folder = mkdtempSync(join(tmpdir(), "outgate-namespace-"));
  const resolv = join(folder, "resolv.conf");
  const hosts = join(folder, "hosts");
  writeFileSync(resolv, "nameserver 127.0.0.1\noptions attempts:1 timeout:2\n");
  writeFileSync(hosts, "127.0.0.1 localhost\n");
  const script =
    'ip link set lo up && mount --bind "$0" /etc/resolv.conf && mount --bind "$1" /etc/hosts && shift && exec "$@"';
  try {
    const child = Bun.spawn(["unshare", "-n", "-m", "sh", "-c", `${script} 2>&1`, resolv, hosts, ...command], {
      env: { ...process.env, [INSIDE]: "1" },
      stdout: "pipe",
      stderr: "inherit",
      timeout: timeoutMs,
    });
    const output = await child.stdout.text();
    return { exitCode: await child.exited, output };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

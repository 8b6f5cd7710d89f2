import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../support/free-port.ts";
import { until } from "../support/until.ts";

const ROOT = join(import.meta.dir, "../..");

/** A load balancer with a configuration of deploy/, in front of nodes on this machine. */
export interface Balancer extends AsyncDisposable {
  readonly url: string;
}

interface Program {
  readonly name: string;
  /** Null: it is not installed here. */
  readonly path: string | null;
  readonly start: (path: string, nodes: readonly string[]) => Promise<Balancer>;
}

/** The load balancers of deploy/. Debian installs nginx where only root's PATH finds it. */
export const PROGRAMS: readonly Program[] = [
  { name: "nginx", path: Bun.which("nginx") ?? Bun.which("/usr/sbin/nginx"), start: startNginx },
  { name: "Caddy", path: Bun.which("caddy"), start: startCaddy },
];

/** What docs/deploy.md changes for Caddy 2.6, which Debian 12 has. */
export const FOR_CADDY_26 = ["request_buffers 4MB", "buffer_requests"] as const;

async function isCaddy26(path: string): Promise<boolean> {
  return (await Bun.$`${path} version`.text()).startsWith("2.6.");
}

const NGINX_NODE = "server 127.0.0.1:3000 max_fails=0;";

async function startNginx(path: string, nodes: readonly string[]): Promise<Balancer> {
  const port = await freePort();
  const site = await changed("nginx.conf", [
    ["listen 80;", `listen 127.0.0.1:${port};`],
    [NGINX_NODE, nodes.map((node) => NGINX_NODE.replace("127.0.0.1:3000", node)).join(" ")],
  ]);
  const folder = mkdtempSync(join(tmpdir(), "outgate-nginx-"));
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  await Bun.write(
    join(folder, "main.conf"),
    [
      // As root its workers would be another user, which can't enter the folder.
      process.getuid?.() === 0 ? "user root;" : "",
      `daemon off; worker_processes 1; pid ${folder}/pid; error_log ${folder}/error.log;`,
      "events {}",
      `http { access_log off; ${temporary.map((name) => `${name}_temp_path ${folder}/${name};`).join(" ")}`,
      site,
      "}",
    ].join("\n"),
  );
  return run([path, "-p", folder, "-e", `${folder}/error.log`, "-c", `${folder}/main.conf`], {
    folder,
    port,
    signal: "SIGTERM",
  });
}

async function startCaddy(path: string, nodes: readonly string[]): Promise<Balancer> {
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), "outgate-caddy-"));
  const file = join(folder, "Caddyfile");
  const changes = (await isCaddy26(path)) ? [FOR_CADDY_26] : [];
  await Bun.write(file, `{\n\tadmin off\n}\n${await changed("Caddyfile", changes)}`);
  const env = { BASE_URL: `http://127.0.0.1:${port}`, OUTGATE_NODES: nodes.join(" "), HOME: folder };
  // By SIGTERM it would wait for open streams to end.
  return run([path, "run", "--config", file, "--adapter", "caddyfile"], { folder, port, env, signal: "SIGKILL" });
}

/** A file of deploy/ with other addresses. Throws if a text that is to be replaced is not in it. */
async function changed(name: string, changes: readonly (readonly [from: string, to: string])[]): Promise<string> {
  let text = await Bun.file(join(ROOT, "deploy", name)).text();
  for (const [from, to] of changes) {
    if (!text.includes(from)) throw new Error(`deploy/${name} has no ${JSON.stringify(from)}.`);
    text = text.replace(from, () => to);
  }
  return text;
}

interface Running {
  readonly folder: string;
  readonly port: number;
  readonly env?: Readonly<Record<string, string>>;
  /** What ends it at once, with its own processes. */
  readonly signal: "SIGTERM" | "SIGKILL";
}

async function run(command: readonly string[], { folder, port, env = {}, signal }: Running): Promise<Balancer> {
  const balancer = Bun.spawn([...command], { env, stdout: "ignore", stderr: "ignore" });
  const url = `http://127.0.0.1:${port}`;
  await until(async () => {
    if (balancer.exitCode !== null) throw new Error(`${command.join(" ")} ended with ${balancer.exitCode}.`);
    return fetch(url).then(
      () => true,
      () => false,
    );
  });
  return {
    url,
    async [Symbol.asyncDispose]() {
      balancer.kill(signal);
      await balancer.exited;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

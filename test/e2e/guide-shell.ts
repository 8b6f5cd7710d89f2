import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { saidBy } from "../cli/outgate.ts";
import { COMMAND_LINE } from "../support/programs.ts";
import { OWNER_KEY, type Service } from "../support/service.ts";

const OUTGATE = `#!/bin/sh\nexec '${process.execPath}' '${COMMAND_LINE}' "$@"\n`;

/** Leaves out how npm is asked for the script, which takes what follows. */
const AS_NPM = `#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done; shift\nexec outgate "$@"\n`;

/** A shell in the folder of a service, where a command of a guide does what it does to its reader, whose key is the owner's. */
export function openGuideShell({ folder }: Pick<Service, "folder">, url: string) {
  const bin = join(folder, ".bin");
  mkdirSync(bin, { recursive: true });
  writeFileSync(join(bin, "outgate"), OUTGATE, { mode: 0o755 });
  writeFileSync(join(bin, "npm"), AS_NPM, { mode: 0o755 });
  const { PATH, HOME } = process.env;
  const reader = {
    PATH: `${bin}:${PATH}`,
    HOME,
    XDG_CONFIG_HOME: folder,
    OUTGATE_URL: url,
    OUTGATE_API_KEY: OWNER_KEY,
  };
  return async (command: string, env: Readonly<Record<string, string>> = {}) => {
    const shell = Bun.spawn(["bash", "-e", "-c", command.replaceAll("http://127.0.0.1:3000", url)], {
      cwd: folder,
      env: { ...reader, ...env },
      stdin: new Blob([`${OWNER_KEY}\n`]),
      stdout: "pipe",
      stderr: "pipe",
    });
    const { code, out, err } = await saidBy(shell);
    return { code, output: out, errors: err };
  };
}

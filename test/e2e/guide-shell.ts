import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { COMMAND_LINE } from "../support/programs.ts";
import { OWNER_KEY, type Service } from "../support/service.ts";

/** Leaves out how npm is asked for the script, which takes what follows. */
const AS_NPM = `#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done; shift\nexec '${process.execPath}' '${COMMAND_LINE}' "$@"\n`;

/** A shell in the folder of a service, where a command of a guide does what it does to its reader, whose key is the owner's. */
export function openGuideShell({ folder }: Pick<Service, "folder">, url: string) {
  const bin = join(folder, ".bin");
  mkdirSync(bin);
  writeFileSync(join(bin, "npm"), AS_NPM);
  chmodSync(join(bin, "npm"), 0o755);
  const { PATH, HOME } = process.env;
  const reader = {
    PATH: `${bin}:${PATH}`,
    HOME,
    XDG_CONFIG_HOME: folder,
    OUTGATE_URL: url,
    OUTGATE_API_KEY: OWNER_KEY,
  };
  return async (command: string, env: Readonly<Record<string, string>> = {}) => {
    const shell = Bun.spawn(["bash", "-c", command.replaceAll("http://127.0.0.1:3000", url)], {
      cwd: folder,
      env: { ...reader, ...env },
      stdin: new Blob([`${OWNER_KEY}\n`]),
      stdout: "pipe",
      stderr: "pipe",
    });
    const [output, errors] = await Promise.all([new Response(shell.stdout).text(), new Response(shell.stderr).text()]);
    return { code: await shell.exited, output, errors };
  };
}

import { EXIT, type Io } from "./command.ts";

/** The process as commands see it. It ends when nobody reads on: the other end of a pipe has had enough. */
export function processIo(env: Io["env"]): Io {
  process.stdout.on("error", () => process.exit(EXIT.ok));
  return {
    env,
    out: (text) => process.stdout.write(text),
    err: (text) => process.stderr.write(text),
    isTty: process.stdout.isTTY,
    canAnswer: process.stdout.isTTY && process.stdin.isTTY,
    columns: process.stdout.columns,
    input: process.stdin,
    onInterrupt(listener) {
      process.once("SIGINT", listener);
      return () => void process.off("SIGINT", listener);
    },
  };
}

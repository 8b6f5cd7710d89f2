const PROGRAM = new URL("child.ts", import.meta.url).pathname;

/** Starts a program of the tests. */
export function startProgram(program: string, ...command: readonly string[]) {
  return start([process.execPath, program, ...command]);
}

/** Starts one of the commands of `child.ts`. */
export function startChild(...command: readonly string[]) {
  return start([process.execPath, PROGRAM, ...command]);
}

/** Whether this machine lets us mount in a namespace of our own. */
export function canMount(): boolean {
  try {
    return Bun.spawnSync(["unshare", "-m", "true"]).success;
  } catch {
    return false;
  }
}

/** A second process; it is killed with the test that started it. */
function start(command: readonly string[]) {
  const child = Bun.spawn([...command], { stdin: "pipe", stdout: "pipe", stderr: "pipe" });
  const lines = linesOf(child.stdout);
  const errors = new Response(child.stderr).text();
  const kill = async () => {
    child.kill("SIGKILL");
    await child.exited;
  };
  return {
    pid: child.pid,
    /** Writes a line to its standard input. */
    async say(line: string): Promise<void> {
      await child.stdin.write(`${line}\n`);
      await child.stdin.flush();
    },
    /** The next line that it prints; throws with its errors when it ends before. */
    async line(): Promise<string> {
      const { value, done } = await lines.next();
      if (done !== true) return value;
      throw new Error(`The child process ended: ${await errors}`);
    },
    errors: () => errors,
    exited: child.exited,
    get isRunning(): boolean {
      return child.exitCode === null && child.signalCode === null;
    },
    /** By SIGKILL; resolves when it is gone. */
    kill,
    [Symbol.asyncDispose]: kill,
  };
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string, undefined> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const piece of stream) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
}

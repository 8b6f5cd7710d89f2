/** Below those that the system gives to whoever asks for any, so that no connection of this machine takes it meanwhile. */
const [FIRST, COUNT] = [11_000, 20_000];

/** A port of loopback that is free and stays so: for what has to know its address before it listens. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST + Math.floor(Math.random() * COUNT);
    try {
      await Bun.serve({ port, hostname: "127.0.0.1", fetch: () => new Response() }).stop(true);
      return port;
    } catch {
      // Somebody has it.
    }
  }
}

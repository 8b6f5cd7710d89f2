/**
 * The baseline for Outgate: passes each request on and stores nothing, with the same policy of connections: one for each
 * call. `KEPT=1` keeps them instead.
 */
const isKept = process.env["KEPT"] === "1";
const session = new Bun.FetchSession({ keepAlive: isKept });

const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  async fetch(request) {
    const { url, body } = (await request.json()) as { url: string; body: unknown };
    const reply = await session.fetch(url, {
      method: "POST",
      body: JSON.stringify(body),
      headers: {
        "Content-Type": "application/json",
        "Accept-Encoding": "identity",
        Connection: isKept ? "keep-alive" : "close",
      },
      redirect: "manual",
      decompress: false,
    });
    return Response.json({ status: reply.status, body: await reply.text() }, { status: 201 });
  },
});
console.log(server.port);

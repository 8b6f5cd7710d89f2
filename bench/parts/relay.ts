/** The baseline for Outgate: passes each request on and stores nothing, with the same policy of connections. */
const target = process.env["TARGET"] ?? "";
const session = new Bun.FetchSession({ keepAlive: false });

const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  async fetch(request) {
    const { body } = (await request.json()) as { body: unknown };
    const reply = await session.fetch(target, {
      method: "POST",
      body: JSON.stringify(body),
      headers: { "Content-Type": "application/json", "Accept-Encoding": "identity", Connection: "close" },
      redirect: "manual",
      decompress: false,
    });
    return Response.json({ status: reply.status, body: await reply.text() }, { status: 201 });
  },
});
console.log(server.port);

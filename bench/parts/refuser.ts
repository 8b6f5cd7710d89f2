/** Refuses every request: shows what a flood costs the machine itself. */
const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  async fetch(request) {
    await request.arrayBuffer();
    return new Response("no", { status: 429, headers: { Connection: "close" } });
  },
});
console.log(server.port);

import { expect, setDefaultTimeout } from "bun:test";
import { Target } from "../support/target.ts";
import {
  ANN,
  type Answer,
  type Attack,
  hostOf,
  linksIn,
  type Names,
  NOTIFY,
  type Scene,
  testAttacks,
  textOf,
} from "./attack-world.ts";

setDefaultTimeout(30_000);

const SECRET = "sk_live_4eC39HqLyjWDarjtT1zdp7dc";
const HUNTER = "hunter2-canary";

const isRefused = ({ status }: Answer) => status >= 400 && status < 500;

/** Creates that all have to be refused, and none of which may leave a row. */
async function allRefused({ w }: Scene, requests: readonly unknown[]): Promise<void> {
  for (const request of requests) {
    const answer = await w.create(request);
    expect({ request, status: answer.status, isRefused: isRefused(answer) }).toMatchObject({ isRefused: true });
  }
}

/** What whoever decides reads of a request: mail, link page, page for several at once, page of the inbox. */
async function placesOf({ w }: Scene, id: string): Promise<Readonly<Record<string, string>>> {
  const mail = await w.mailOf(id);
  const [approve] = linksIn(mail);
  return {
    mail: mail.fields["text"] ?? "",
    link: textOf((await w.ask("GET", approve)).text),
    review: textOf(await w.page(`/approvals/review?id=${id}`)),
    held: textOf(await w.page(`/approvals/${id}`)),
  };
}

const ATTACKS: readonly Attack[] = [
  {
    name: "A writing method is spelled so that a hold on writes takes it for a read, and a GET carries a body",
    run: async (scene) => {
      const { w, url } = scene;
      for (const method of ["POST", "PUT", "PATCH", "DELETE"]) await w.held({ url, method });
      const methods = ["get", "Get", " GET", "GET ", "GET\r\n", "HEAD", "OPTIONS", "QUERY", "TRACE", "", 0, ["GET"]];
      await allRefused(
        scene,
        methods.map((method) => ({ url, method })),
      );
      await allRefused(scene, [
        { url, method: "GET", body: {} },
        { url, method: "GET", headers: { "Content-Length": "9" } },
        { url, method: "GET", headers: { "Transfer-Encoding": "chunked" } },
        `{"url":"${url}","method":"GET","method":"POST","sync":true}`,
      ]);
    },
  },
  {
    name: "Approve is asked for under other spellings of its path and by method overrides",
    run: async ({ w, url }) => {
      const id = await w.held({ url });
      const path = `/v1/actions/${id}`;
      const ways: readonly (readonly [string, string, Names?])[] = [
        ["POST", `${path}/approve/`],
        ["POST", `${path}/%61pprove`],
        ["POST", `/V1/actions/${id}/approve`],
        ["POST", `//v1/actions/${id}/approve`],
        ["POST", `${path}/./approve`],
        ["POST", `${path}/cancel/../approve`],
        ["POST", `${path}/approve?role=owner`],
        ["POST", `${path}/approve;x`],
        ["GET", `${path}/approve`],
        ["PUT", `${path}/approve`],
        ["GET", `${path}/approve`, { "x-http-method-override": "POST" }],
        ["POST", path, { "x-original-url": `${path}/approve`, "x-rewrite-url": `${path}/approve` }],
        ["POST", `${path}/approve`, { "x-forwarded-user": "ann", "x-role": "owner", "x-outgate-role": "owner" }],
      ];
      for (const [method, at, headers = {}] of ways) {
        expect({ method, at, isRefused: isRefused(await w.by(method, at, { headers })) }).toMatchObject({
          isRefused: true,
        });
      }
      expect(await w.stateOf(id)).toBe("awaiting_approval");
    },
  },
  {
    name: "What was approved is edited while it waits and before it is sent",
    run: async ({ w, url }) => {
      const id = await w.held({ url, body: { amount: 1 }, headers: { "X-Order": "1" } });
      const edited = { url: w.evil.url, body: { amount: 1_000_000 } };
      const edits = async () => {
        for (const method of ["PUT", "PATCH", "POST", "DELETE"]) {
          expect(isRefused(await w.by(method, `/v1/actions/${id}`, { body: edited }))).toBe(true);
        }
        for (const verb of ["cancel", "retry"]) {
          expect(isRefused(await w.by("POST", `/v1/actions/${id}/${verb}`, { body: edited }))).toBe(true);
        }
      };
      await edits();
      await w.owner("approve", id);
      await edits();
      expect(await w.final(id)).toBe("completed");
      return 1;
    },
    target: () => new Target(({ body }) => new Response(null, { status: body === '{"amount":1}' ? 200 : 500 })),
  },
  {
    name: "A member is given twice, once with an escaped name, so that another one is sent than was judged",
    run: async (scene) => {
      const { w, url } = scene;
      const exact = String.raw`{"url":"${w.evil.url}","method":"GET","body":{"amount":1.0},"\u0062ody":{"amount":2.0,"amount":3.0},"\u0075rl":"${url}","meth\u006fd":"POST","approve":true,"approve":false,"notify":{"email":"${ANN}"}}`;
      const { status, json } = await w.create(exact);
      expect([status, json["status"], json["url"]]).toEqual([201, "awaiting_approval", url]);
      const places = await placesOf(scene, String(json["id"]));
      for (const shown of Object.values(places)) expect(shown).toMatch(/"amount": ?3\.0/);
      await w.owner("approve", String(json["id"]));
      expect(await w.final(String(json["id"]))).toBe("completed");
      return 1;
    },
    target: () => new Target(({ body }) => new Response(null, { status: body === '{"amount":3.0}' ? 200 : 500 })),
  },
  {
    name: "Numbers that no double holds and halves of surrogate pairs are sent other than they are shown",
    run: async (scene) => {
      const { w, url } = scene;
      const body = String.raw`{"to":12345678901234567890,"e":1e999,"s":"\ud800","z":"a\u0000b"}`;
      const { json } = await w.create(`{"url":"${url}","body":${body},"notify":{"email":"${ANN}"}}`);
      const id = String(json["id"]);
      const { held } = await placesOf(scene, id);
      for (const part of ["12345678901234567890", "1e999"]) expect(held).toContain(part);
      await w.owner("approve", id);
      await w.final(id);
      for (const part of ["12345678901234567890", "1e999"]) expect(scene.victim.received[0]?.body).toContain(part);
      return 1;
    },
  },
  {
    name: "An approval link is looked for in every answer, callback, receipt and log line",
    run: async ({ w, url }) => {
      const id = await w.held({ url, ...NOTIFY, callback: w.listed.url });
      const links = linksIn(await w.mailOf(id)).map((link) => link.slice(3));
      const paths = [
        `/v1/actions/${id}`,
        `/v1/actions/${id}/timeline`,
        `/v1/actions/${id}/facts`,
        "/v1/actions?limit=100",
        "/metrics",
        "/health",
      ];
      const told = await Promise.all(paths.map(async (path) => (await w.by("GET", path)).text));
      const receipt = String((await w.by("GET", `/v1/actions/${id}`)).json["receipt_url"]);
      told.push((await w.ask("GET", new URL(receipt, w.base).pathname)).text);
      told.push(w.service.output, JSON.stringify(w.listed.received));
      for (const text of told) for (const link of links) expect(text).not.toContain(link);
    },
  },
  {
    name: "Short secrets of another key's action are read in its facts, which are masked for whoever decides",
    run: async ({ w, url }) => {
      const request = {
        url: `${url}?password=${HUNTER}`,
        reason: `password=${HUNTER}`,
        callback: `${w.listed.url}?token=${HUNTER}`,
      };
      const made = await w.ask("POST", "/v1/actions", { key: w.keys["other"] ?? "", body: request });
      for (const name of ["agent", "reader"]) {
        const key = w.keys[name] ?? "";
        const { status, text } = await w.ask("GET", `/v1/actions/${String(made.json["id"])}/facts`, { key });
        expect({ status, isTold: text.includes(HUNTER) }, name).toMatchObject({ isTold: false });
      }
    },
  },
  {
    name: "Metrics, health, the API's document and errors tell of hosts, ids, keys and people",
    run: async ({ w, url }) => {
      const id = await w.held({ url: `${url}canary-path`, headers: { Authorization: SECRET } });
      const paths = ["/metrics", "/health", "/ready", "/openapi.json", "/docs", "/nothing", "/v1/nothing"];
      const told = await Promise.all(paths.map(async (path) => (await w.ask("GET", path)).text));
      for (const text of told) {
        for (const canary of [
          id,
          hostOf(w.listed),
          "canary-path",
          SECRET,
          w.keyIds["agent"] ?? "",
          w.keys["agent"] ?? "",
        ]) {
          expect(text).not.toContain(canary);
        }
      }
      for (const text of told.slice(0, 3)) expect(text).not.toContain(ANN);
      for (const canary of [SECRET, "canary-path", w.keys["agent"] ?? "", w.cookie.split("=")[1] ?? ""]) {
        expect(w.service.output).not.toContain(canary);
      }
    },
  },
  {
    name: "The payload is dressed as a real token: JWT, Basic credentials, key block, issuer's key, webhook URL",
    run: async (scene) => {
      const { w, url } = scene;
      const order = Buffer.from('{"transfer":"all","to":"mallory"}').toString("base64url");
      const der = Buffer.concat([Buffer.from([0x30, 0x40]), Buffer.alloc(64, "delete everything ")]).toString("base64");
      const dressed: readonly (readonly [string, object])[] = [
        ["jwt", { body: { order: `eyJhbGciOiJub25lIn0.${order}.x` } }],
        ["basic", { body: { order: `Basic ${btoa("delete:everything-now")}` } }],
        ["pem", { body: { order: `-----BEGIN X-----\n${der}\n-----END X-----` } }],
        ["issuer", { body: { order: "ghp_deleteAll1Accounts2And3Users4Now5x6y7z8" } }],
        ["name", { body: { [`ghp_deleteAll1Accounts2And3Users4Now5x6y7z8`]: 1 } }],
        ["header", { headers: { "X-Do": "ghp_deleteAll1Accounts2And3Users4Now5x6y7z8" } }],
        ["path", { url: `${url}ghp_deleteAll1Accounts2And3Users4Now5x6y7z8` }],
        ["query", { url: `${url}?token=d3l3t3A11Acc0unts4ndUs3rs` }],
        ["encoded", { url: `${url}?x=token%3Dd3l3t3A11Acc0unts4ndUs3rs` }],
        [
          "webhook",
          { body: { post: "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXX1" } },
        ],
        ["long", { body: { pad: "x ".repeat(10_000), order: "ghp_deleteAll1Accounts2And3Users4Now5x6y7z8" } }],
        ["callback", { callback: `${w.listed.url}ghp_deleteAll1Accounts2And3Users4Now5x6y7z8` }],
      ];
      for (const [name, request] of dressed) {
        const id = await w.held({ url, ...request, ...NOTIFY });
        for (const [place, text] of Object.entries(await placesOf(scene, id))) {
          const isShown = !text.includes("••••") || place === "review";
          expect({ name, place, isToldOrShown: isShown || /values? hidden/.test(text) }).toMatchObject({
            isToldOrShown: true,
          });
        }
        await w.by("POST", `/v1/actions/${id}/cancel`);
      }
    },
  },
  {
    name: "The payload is written in escapes of JSON that a number in the body keeps from being read",
    run: async (scene) => {
      const { w, url } = scene;
      const escaped = String.raw`{"n":1.0,"\u0064\u006f":"\u0064\u0065\u006c\u0065\u0074\u0065 \u0061\u006c\u006c"}`;
      const { json } = await w.create(`{"url":"${url}","body":${escaped},"notify":{"email":"${ANN}"}}`);
      const places = await placesOf(scene, String(json["id"]));
      for (const [place, text] of Object.entries(places)) {
        expect(text.includes("delete all") && text.includes('"do"'), place).toBe(true);
      }
    },
  },
  {
    name: "A reason, a body and a header imitate lines of the service's own",
    run: async (scene) => {
      const { w, url } = scene;
      const forged = "ok\nURL: https://good.example/\nEarlier rejections: None\n\nApprove: https://evil.example/a/x";
      const html = `</pre></section><form action="${w.evil.url}"><button>Approve</button></form><script>alert(1)</script>`;
      const id = await w.held({ url, reason: forged, body: { html, forged }, headers: { "X-A": html }, ...NOTIFY });
      const mail = await w.mailOf(id);
      const lines = (mail.fields["text"] ?? "").split("\n").map((line) => line.trim());
      expect(
        lines.filter((line) => /^(?:URL|Approve|Earlier rejections):? .*(?:good|evil)\.example/.test(line)),
      ).toEqual([]);
      const pages = [mail.fields["html"] ?? "", (await w.ask("GET", linksIn(mail)[0])).text];
      pages.push((await w.ask("GET", `/approvals/${id}`, { headers: { cookie: w.cookie } })).text);
      for (const page of pages) {
        expect(page).not.toContain("<script>alert");
        expect(page).not.toContain(`<form action="${w.evil.url}"`);
      }
    },
  },
];

testAttacks(ATTACKS);

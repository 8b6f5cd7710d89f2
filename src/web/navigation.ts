/** The pages that somebody who is signed in gets to from every other one, in this order. A new page is a row here. */
export const NAVIGATION = [
  { name: "Overview", path: "/overview" },
  { name: "Approvals", path: "/approvals" },
  { name: "Actions", path: "/actions" },
  { name: "Keys", path: "/keys" },
  { name: "Settings", path: "/settings" },
  { name: "Docs", path: "/docs" },
] as const;

export type Place = (typeof NAVIGATION)[number]["name"];

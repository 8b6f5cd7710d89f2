/**
 * Adds a secret to each form that changes something, to prove that it comes from a page of this origin: on plain http, browsers
 * send the session cookie to every port of the host, but each port has its own storage. A login creates the secret, and the
 * server stores its hash. Without it, the server asks for the password.
 */
const FIELD = "session_secret";
const NAME = "outgate_session_secret";

function stored(): string {
  const secret = localStorage.getItem(NAME) ?? "";
  return /^[0-9a-f]{64}$/.test(secret) ? secret : renewed();
}

function renewed(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(32));
  const secret = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  localStorage.setItem(NAME, secret);
  return secret;
}

/** The new secret of a login form. One per page, because `formdata` may fire more than once. */
let newest = "";

// `formdata` fires also for forms that a script sends.
addEventListener("formdata", ({ target, formData }) => {
  const isPost = target instanceof HTMLFormElement && target.getAttribute("method") === "post";
  if (location.protocol !== "http:" || !isPost) return;
  try {
    formData.set(FIELD, target.dataset["session"] === "new" ? (newest ||= renewed()) : stored());
  } catch {
    // Without storage, the server asks for the password.
  }
});

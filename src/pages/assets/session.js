/**
 * Proves to the server that a form comes from a page of this origin. Where the address is plain http, browsers send our
 * cookie to every port of the host; storage is kept by origin, port and all. So each form that changes something brings
 * along a secret that only the storage holds. A log-in makes it; the server keeps its hash. Without it the server asks
 * for the password.
 */
const FIELD = "session_secret";
const NAME = "outgate_session_secret";

function stored() {
  const secret = localStorage.getItem(NAME) ?? "";
  return /^[0-9a-f]{64}$/.test(secret) ? secret : renewed();
}

function renewed() {
  const bytes = crypto.getRandomValues(new Uint8Array(32));
  const secret = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  localStorage.setItem(NAME, secret);
  return secret;
}

/** Of a log-in: one for the page, since browsers may put the fields of a form together more than once. */
let newest = "";

// Also for forms that a script sends: it fires wherever the fields of a form are put together.
addEventListener("formdata", ({ target, formData }) => {
  const isPost = target instanceof HTMLFormElement && target.getAttribute("method") === "post";
  if (location.protocol !== "http:" || !isPost) return;
  try {
    formData.set(FIELD, target.dataset.session === "new" ? (newest ||= renewed()) : stored());
  } catch {
    // The browser gives pages no storage: the server asks for the password.
  }
});

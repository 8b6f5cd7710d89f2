/**
 * Every bound of the service, by name. A number that stops something growing stands here and nowhere else, so that
 * one page tells a reader what the service will never exceed.
 */

const SECOND_MS = 1_000;

const MINUTE_MS = 60 * SECOND_MS;

const HOUR_MS = 60 * MINUTE_MS;

const DAY_MS = 24 * HOUR_MS;

/** What one request may bring. */
export const REQUEST_BODY_BYTES_MAX = 1_048_576;

export const JSON_DEPTH_MAX = 64;

export const JSON_MEMBERS_MAX = 10_000;

/** After a refusal this much of the rest is read and dropped, so that the client sees the answer. */
export const REFUSED_BODY_BYTES_DROPPED_MAX = 4 * 1_048_576;

/** And this long the connection stays behind it, unread: a reset would overtake the answer while the client still sends. */
export const REFUSED_BODY_LINGER_MS = 250;

export const REFUSED_BODY_MS_MAX = 2 * SECOND_MS;

export const REQUEST_ARRIVAL_MS_MAX = 30 * SECOND_MS;

export const URL_CHARS_MAX = 8_192;

/** How long the links of an approval mail decide anything. */
export const APPROVAL_LINK_MS = 7 * DAY_MS;

export const KEY_CHARS_MAX = 255;

export const REASON_CHARS_MAX = 1_000;

export const EMAIL_CHARS_MAX = 254;

export const NAME_CHARS_MAX = 100;

/** Headers that an agent may set. */
export const HEADERS_MAX = 64;

export const HEADER_NAME_CHARS_MAX = 128;

export const HEADER_VALUE_BYTES_MAX = 8_192;

export const HEADERS_BYTES_MAX = 16_384;

export const RETRIES_DEFAULT = 3;

export const RETRIES_MAX = 100;

export const WAIT_SECONDS_DEFAULT = 30;

export const WAIT_SECONDS_MAX = 120;

/** Requests of one account that may hang in `sync` or `wait` at a time; above it one of the key with the most answers at once. */
export const WAITERS_PER_ACCOUNT_MAX = 1_000;

/** How long a rejection counts, and how often its request is asked for again meanwhile by whoever may not approve it. */
export const REJECTION_WINDOW_MS = DAY_MS;

export const ASKED_AGAIN_MAX = 2;

/** Rejections of one key, and requests for the same again, that are kept; a key that has as many may ask for nothing more. */
export const REJECTIONS_PER_KEY_MAX = 10_000;

/** Of what was said before about one request, the newest that a person is shown. */
export const EARLIER_REJECTIONS_SHOWN_MAX = 10;

/** Requests on one page of the inbox. */
export const HELD_LISTED_MAX = 20;

/** Actions of one key that may await approval at a time; above it creates are refused, and their requester told to wait. */
export const HELD_PER_KEY_MAX = 10_000;

/** Keys that the inbox names with what each has waiting, those that have waited longest. */
export const HELD_REQUESTERS_SHOWN_MAX = 20;

/** Of what a page counts, since the cost of a total would grow with the table. */
export const COUNTED_MAX = 1_000;

/** What is larger is told to whoever approves a request. */
export const USUAL_URL_CHARS_MAX = 1_024;

export const USUAL_HEADERS_BYTES_MAX = 4_096;

export const USUAL_BODY_BYTES_MAX = 65_536;

/** Characters of a body of which the escapes are read to find what they hide. */
export const RISK_DECODED_CHARS_MAX = 65_536;

/** Characters of a host in the subject of a mail, of which many readers see 40; its end is kept. */
export const SUBJECT_HOST_CHARS_MAX = 32;

/** Newest actions for a host that are looked at to tell whether one of a key was approved and has completed. */
export const HOST_ACTIONS_LOOKED_AT_MAX = 1_000;

/** Actions that one step of a bulk retry begins again. */
export const RETRY_BATCH_MAX = 50;

/** Characters that are masked on the event loop (4 ms of the worst); what is longer is masked on another thread. */
export const MASKED_INLINE_CHARS_MAX = 16_384;

/** Characters of a command that a page offers to copy. */
export const SNIPPET_CHARS_MAX = 16_384;

/** Runs that the page of an action draws, the newest. */
export const RUNS_DRAWN_MAX = 10;

export const LIST_LIMIT_DEFAULT = 20;

export const LIST_LIMIT_MAX = 100;

/** Bytes of bodies and headers that one page holds; the rest is found on the following pages, and one action always fits. */
export const LIST_BYTES_MAX = 2 * 1_048_576;

/** Rows that one page may look at; a rarer match than that is found on the following pages (its cursor goes on). */
export const LIST_SCAN_ROWS_MAX = 10_000;

/** Rows of a timeline that one answer shows: 100 attempts a run, and the oldest are dropped beyond many runs. */
export const TIMELINE_ROWS_MAX = 2_000;

/** Open event streams of one account; above it one of the key with the most ends, or the next is told to come back. */
export const EVENT_STREAMS_PER_ACCOUNT_MAX = 100;

/** Bytes that may wait for a reader of events; whoever is told more than that is closed, and may resume. */
export const EVENT_BACKLOG_BYTES_MAX = 1_048_576;

/** Silence on a stream that proxies take for its end is longer than this. */
export const EVENT_HEARTBEAT_MS = 12 * SECOND_MS;

/** A page's stream ends after so many heartbeats, a minute: its browser comes back, and its session is judged again. */
export const PAGE_STREAM_BEATS_MAX = 5;

/** Events that are read at a time, and the bytes of bodies and headers in them; one always fits. */
export const EVENT_PAGE_MAX = 100;

export const EVENT_PAGE_BYTES_MAX = 262_144;

/** Rows of the timeline, of whatever account, that are looked at before others get their turn: about a millisecond. */
export const EVENT_SCAN_ROWS_MAX = 10_000;

/** Keys of an account that are live at a time, and how many one list shows, those that are live first. */
export const LIVE_KEYS_MAX = 500;

export const KEYS_LISTED_MAX = 1_000;

/** Of them on one page. */
export const KEYS_SHOWN_MAX = 50;

/** Keys, each of which replaced the one before, whose actions the last of them acts on. */
export const REPLACED_KEYS_MAX = 1_000;

/** Accounts of the service that one list shows, those that are stopped first. */
export const ACCOUNTS_LISTED_MAX = 500;

/** Hosts of an account to which keys with a hold may send callbacks. */
export const CALLBACK_HOSTS_MAX = 100;

/** Pauses of an account in force at a time. */
export const PAUSES_MAX = 1_000;

/** Of the pauses that ever covered an action, the newest that its timeline tells of. */
export const PAUSES_TOLD_MAX = 100;

/** Unfinished actions of a revoked key that one step cancels. */
export const CANCEL_BATCH_MAX = 50;

/** The audit log: entries of one step of an export, and rows that a page looks at. */
export const AUDIT_STEP_ROWS = 500;

export const AUDIT_SCAN_ROWS_MAX = 10_000;

/** Characters of the actor that entries are asked for by: a kind and an address. */
export const ACTOR_CHARS_MAX = 300;

/** Of log-ins to one address that were refused in a window so many have an entry each, the others one that counts them. */
export const SIGN_INS_TOLD_MAX = { sign_in_failed: 10, sign_in_throttled: 1 } as const;

/** Addresses whose log-ins are counted so at a time; of others nothing is told. */
export const SIGN_INS_COUNTED_MAX = 10_000;

/** The overview: a day in half hours, of so many accounts; whoever was quiet longest is forgotten (some 35 MB in all). */
export const OVERVIEW_SLOT_MS = 30 * MINUTE_MS;

export const OVERVIEW_SLOTS = DAY_MS / OVERVIEW_SLOT_MS;

export const OVERVIEW_ACCOUNTS_MAX = 1_000;

/** Of an account: hosts that failed lately which are remembered, and which are shown. */
export const FAILING_HOSTS_MAX = 20;

export const FAILING_HOSTS_SHOWN_MAX = 10;

/** Rows of the timeline that a start reads back, and how many of them before others get their turn. */
export const HISTORY_ROWS_MAX = 200_000;

export const HISTORY_PAGE_ROWS = 500;

/** Pending actions of an account that the overview looks at, and the hosts that it shows of them. */
export const ASLEEP_SCAN_ROWS_MAX = 10_000;

export const ASLEEP_HOSTS_MAX = 10;

/** Callbacks and mails on the page of the settings, and on a page of their own. */
export const NOTIFICATIONS_NEWEST_MAX = 5;

export const NOTIFICATIONS_SHOWN_MAX = 25;

/** A host name has 253 characters, with scheme and port some more. */
export const ORIGIN_CHARS_MAX = 300;

/** People and their sessions. */
export const PASSWORD_CHARS_MIN = 8;

export const PASSWORD_CHARS_MAX = 256;

/** Each takes 64 MiB and a core for 0.1 s: of more than these one waits for another. */
export const PASSWORD_HASHES_MAX = 2;

/**
 * Log-ins and sign-ups that may wait for their turn, some 8 s, of known devices and of others each, and of one client or
 * known person; above it they are told to come back (503).
 */
export const PASSWORD_HASHES_WAITING_MAX = 128;

export const PASSWORD_HASHES_WAITING_PER_LANE_MAX = 32;

/** Then one of the others, if any waits: an account of one's own is no way to keep strangers out. */
export const PASSWORD_HASHES_OF_KNOWN_IN_A_ROW_MAX = 2;

export const SESSION_MS_MAX = 7 * DAY_MS;

/** Of one person at a time; a further log-in ends the oldest. */
export const SESSIONS_PER_PERSON_MAX = 100;

export const WELCOME_LINK_MS_MAX = 7 * DAY_MS;

export const PASSWORD_LINK_MS_MAX = DAY_MS;

/** How long a browser in which somebody has logged in is known by it; Chrome keeps no cookie for longer. */
export const DEVICE_MS_MAX = 400 * DAY_MS;

/** Wrong log-ins and sign-ups in a window, and how many names of each kind are remembered in it. */
export const LOGIN_WINDOW_MS = MINUTE_MS;

export const WRONG_LOGINS_PER_ACCOUNT_AND_CLIENT_MAX = 5;

export const SIGN_UPS_PER_CLIENT_MAX = 20;

export const WRONG_LOGINS_PER_CLIENT_MAX = 100;

export const LOGINS_REMEMBERED_MAX = 10_000;

/** Of an `X-Forwarded-For`, from its end: addresses and characters that are looked at. */
export const FORWARDED_ADDRESSES_MAX = 16;

export const FORWARDED_CHARS_MAX = 1_024;

/** How long a page that follows a form can be loaded again, and of what it tells the characters that one cookie holds. */
export const FLASH_MS_MAX = 5 * MINUTE_MS;

export const FLASH_COOKIE_CHARS_MAX = 3_500;

export const FLASH_COOKIES_MAX = 4;

/** Bytes of a form that one of our own pages sends. */
export const FORM_BYTES_MAX = 65_536;

export const FORM_FIELDS_MAX = 100;

/** Keys that were just made on a page, remembered for `FLASH_MS_MAX`, so that a form that comes twice makes one. */
export const MADE_KEYS_REMEMBERED_MAX = 1_000;

export const NEXT_CHARS_MAX = 2_048;

/** Both kinds of deduplication look this far back from now. */
export const DEDUPE_WINDOW_MS = DAY_MS;

/** After a rotation the secret before it signs too for so long. */
export const SIGNING_OVERLAP_MS = DAY_MS;

/** How long a process goes on with the signing secrets that it has read. */
export const SIGNING_SECRETS_FRESH_MS = MINUTE_MS;

/** Answers of targets. */
export const RESPONSE_BODY_BYTES_MAX = 262_144;

export const RETRY_AFTER_MS_MIN = SECOND_MS;

export const RETRY_AFTER_MS_MAX = DAY_MS;

export const ATTEMPT_TIMEOUT_MS_DEFAULT = 30 * SECOND_MS;

export const DNS_TIMEOUT_MS = 3 * SECOND_MS;

export const ADDRESSES_TRIED_MAX = 16;

/** How long one address may take to accept a connection, within the attempt's deadline, before the next one is tried. */
export const CONNECT_TIMEOUT_MS = 3 * SECOND_MS;

/** An address that answered is not probed again for so long; and how many are remembered. */
export const CONNECTABLE_FRESH_MS = 250;

export const CONNECTABLE_REMEMBERED_MAX = 1_024;

/** How long the addresses of this machine's interfaces are taken for known. */
export const INTERFACES_FRESH_MS = SECOND_MS;

export const LOCATION_CHARS_MAX = 2_048;

export const RETRY_BASE_MS_DEFAULT = 2 * SECOND_MS;

export const RETRY_CAP_MS_DEFAULT = HOUR_MS;

export const RETRY_JITTER = 0.2;

/** After how long a callback or mail that failed is tried again, ± `RETRY_JITTER`; after the last it is given up. */
export const NOTIFY_DELAYS_MS = [5 * SECOND_MS, 30 * SECOND_MS, 5 * MINUTE_MS, 30 * MINUTE_MS, 2 * HOUR_MS] as const;

/** Callbacks under way at a time: in all, and from one account to one host. */
export const CALLBACKS_IN_FLIGHT_MAX = 64;

export const CALLBACKS_PER_HOST_MAX = 16;

/** Mails under way at a time: in all, and from one account to one recipient, who gets them in their order. */
export const MAILS_IN_FLIGHT_MAX = 8;

export const MAILS_AT_ONCE_MAX = 1;

/** Mails within an hour: to one recipient, and of one account. */
export const MAIL_WINDOW_MS = HOUR_MS;

export const MAILS_PER_RECIPIENT_MAX = 100;

export const MAILS_PER_ACCOUNT_MAX = 1_000;

/** Bytes of each part of a request that a mail shows; the whole stands behind its links. */
export const MAIL_PART_BYTES_MAX = 2_048;

/** Results that are known and could not be written yet: in all of them, above which nothing is claimed. */
export const KEPT_RESULTS_BYTES_MAX = 64 * 1_048_576;

/** What a kept result takes beside its texts. */
export const KEPT_RESULT_BYTES = 2_048;

/** After how long a result that could not be written is offered again: twice as long each time, up to the second. */
export const WRITE_AGAIN_MS = 250;

export const WRITE_AGAIN_MS_MAX = 2 * SECOND_MS;

/** Claims of which the store did not say whether they were written, by row; beyond it the oldest are left to their lease. */
export const CLAIMS_IN_DOUBT_MAX = 4_096;

/** Rows that were altered by hand and are ended at a time: each is read whole. */
export const BROKEN_ROWS_MAX = 16;

/** Rows that the store refused and are remembered until they are ended. */
export const REFUSED_ROWS_MAX = 1_000;

/** A claim is the claimant's for the attempt's deadline and this much more to write the result down. */
export const LEASE_GRACE_MS = 15 * SECOND_MS;

/** Of a lease as much is kept for writing the result down, and with less than this beside it no attempt begins. */
export const LEASE_WRITE_MS = 5 * SECOND_MS;

export const ATTEMPT_MS_MIN = SECOND_MS;

export const RESCUE_EVERY_MS = 5 * SECOND_MS;

/** Rows that one step of a rescue takes up, and their bytes; one always fits, and what is left is taken by the next step. */
export const RESCUE_ROWS_MAX = 500;

export const RESCUE_BYTES_MAX = 2 * 1_048_576;

/** A timer never sleeps longer: a suspended machine or a jump of the clock costs at most this. */
export const SLEEP_MS_MAX = 30 * SECOND_MS;

/** A call to the database ends after this, whatever it does: who waits for it is answered 503. */
export const STORE_CALL_MS_MAX = 4 * SECOND_MS;

/** Whether the service is ready is told within this, and from what was found out up to so long ago. */
export const READY_MS_MAX = 1_500;

export const READY_FRESH_MS = SECOND_MS;

/** What the metrics count in the store is counted anew after so long, however many look. */
export const COUNTS_FRESH_MS = 10 * SECOND_MS;

/** A remote database is one service's for so long after it has written the last time, which it does as often as this. */
export const SERVICE_LOCK_MS = 15 * SECOND_MS;

export const SERVICE_LOCK_BEAT_MS = 3 * SECOND_MS;

/** A store that can't be opened at the start is tried again this often. */
export const OPEN_AGAIN_MS = SECOND_MS;

/** The wall clock may be set back by so much before what sleeps is rescheduled: small corrections are usual. */
export const CLOCK_TOLERANCE_MS = 5 * SECOND_MS;

/** Rows that one step of that takes up, so that it never holds the writer for long. */
export const RESCHEDULE_ROWS_MAX = 5_000;

export const DRAIN_MS_MAX = 30 * SECOND_MS;

/** What was interrupted at the end of that, and results that are kept, may still be written for so long. */
export const DRAIN_WRITE_MS = SECOND_MS / 2;

/** A write that lost its race reads again and decides again this often. */
export const DECIDE_TRIES_MAX = 3;

/** Lanes (account, host and key) kept in memory; those beyond it are found by the sweep when there is room again. */
export const LANES_MAX = 50_000;

/** Lanes that a reading of the metrics looks at to find the action that has been due longest: a few milliseconds. */
export const DUE_LANES_LOOKED_AT_MAX = 1_000;

/** Due actions of one lane remembered by id; the rest is read from the store when these are sent. */
export const LANE_READY_MAX = 256;

/** Of the slots of a host so many, rounded down, are left to keys of the account that hold none there: two of 64. */
export const HOST_RESERVE_SHARE = 1 / 32;

/** Ids that one claim takes to the store. */
export const CLAIM_ROWS_MAX = 256;

/** Where too much waits to be written, a claim is tried again after this. */
export const CLAIM_AGAIN_MS = 250;

/** A row of more bytes than this is large: such rows are claimed in steps of so many bytes, and count against two limits. */
export const SMALL_ROW_BYTES_MAX = 16_384;

export const LARGE_CLAIM_BYTES_MAX = 524_288;

/** Bytes of large actions, and of large callbacks, that are claimed and not yet recorded; one always fits. */
export const ACTION_BYTES_IN_FLIGHT_MAX = 12 * 1_048_576;

export const CALLBACK_BYTES_IN_FLIGHT_MAX = 6 * 1_048_576;

/** After so many bytes of them the garbage collector is told, and in a heap up to this size it collects all at once (30 ms). */
export const LARGE_GARBAGE_BYTES_MAX = 16 * 1_048_576;

export const COLLECTED_HEAP_BYTES_MAX = 48 * 1_048_576;

/** Writes that may wait for one commit, and their bytes; above it a caller is told to come back (503). */
export const WRITES_WAITING_MAX = 20_000;

export const WRITES_WAITING_BYTES_MAX = 32 * 1_048_576;

export const FLUSH_ROWS_MAX = 1_000;

/** Bytes of payload that one commit takes, so that a flush of large bodies does not hold the event loop. */
export const FLUSH_BYTES_MAX = 8 * 1_048_576;

/** Held actions that one step looks at, and how many of them are cancelled at a time: each is read whole. */
export const EXPIRE_SCAN_ROWS_MAX = 500;

export const EXPIRE_AT_ONCE_MAX = 16;

/** Actions that one step of retention looks at, and the rows and bytes that it deletes in one commit. */
export const PRUNE_SCAN_ROWS_MAX = 200;

export const PRUNE_ROWS_MAX = 500;

export const PRUNE_BYTES_MAX = 4 * 1_048_576;

/** Between two steps the disk is for whoever else wants to write. */
export const PRUNE_REST_MS = 20;

/** Sealed texts that one commit of a change of the master key takes: 5 MB at most. */
export const RESEAL_ROWS_MAX = 200;

/** Texts that could not be opened and are named; the rest is only counted. */
export const UNOPENED_NAMED_MAX = 10;

/** Agents that speak MCP. Bytes of a body, sent or answered, that the result of a tool shows; REST has the whole. */
export const TOOL_BODY_BYTES_MAX = 16_384;

/** Bytes of bodies that are read for a page of actions in a tool result; one action always fits. */
export const TOOL_LIST_BYTES_MAX = 262_144;

/** How long a question may be answered, and how many of one key's may be open where a call waits for it. */
export const QUESTION_MS = 10 * MINUTE_MS;

export const QUESTIONS_OPEN_MAX = 20;

/** A tool call that may not tell its progress ends after this: most clients give up after a minute. */
export const SILENT_WAIT_SECONDS_MAX = 50;

export const PROGRESS_EVERY_MS = 5 * SECOND_MS;

/** Sessions of 2025-era clients: of one account unless it is set, and until one that nobody uses is closed. */
export const MCP_SESSIONS_PER_ACCOUNT_DEFAULT = 20;

export const SESSION_IDLE_MS = 10 * MINUTE_MS;

export const SESSION_SWEEP_MS = MINUTE_MS;

/** A stream says something as often as this, so that nothing on the way takes it for dead. */
export const KEEP_ALIVE_MS = 10 * SECOND_MS;

export const RATE_WINDOW_MS = SECOND_MS;

/** A key floods that is refused so often in a second: it goes on although it was told to wait. */
export const RATE_FLOOD_REFUSALS = 2;

/** In the second in which further keys begin to ask beside one that floods, an account may make so many times its requests. */
export const RATE_OVERSHOOT_MAX = 2;

/** A refusal of a key that floods waits about this long; beyond so many at a time they go out at once. */
export const REFUSAL_HELD_MS = SECOND_MS;

export const REFUSALS_HELD_MAX = 4_096;

/**
 * Every bound of the service, by name. A number that stops something growing stands here and nowhere else, so that
 * one page tells a reader what the service will never exceed.
 */

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** What one request may bring (spec "Limits", decisions 2). */
export const REQUEST_BODY_BYTES_MAX = 1_048_576;
export const JSON_DEPTH_MAX = 64;
export const JSON_MEMBERS_MAX = 10_000;
/** After a refusal this much of the rest is read and dropped, so that the client sees the answer (hostile 1). */
export const REFUSED_BODY_BYTES_DROPPED_MAX = 4 * 1_048_576;
/** And this long the connection stays behind it, unread: a reset would overtake the answer while the client still sends. */
export const REFUSED_BODY_LINGER_MS = 250;
export const REFUSED_BODY_MS_MAX = 2 * SECOND_MS;
export const REQUEST_ARRIVAL_MS_MAX = 30 * SECOND_MS;

export const URL_CHARS_MAX = 8_192;
/** How long the links of an approval mail decide anything (decisions 7). */
export const APPROVAL_LINK_MS = 7 * DAY_MS;

export const KEY_CHARS_MAX = 255;
export const REASON_CHARS_MAX = 1_000;
export const EMAIL_CHARS_MAX = 254;
export const NAME_CHARS_MAX = 100;

/** Headers that an agent may set (hostile 2). */
export const HEADERS_MAX = 64;
export const HEADER_NAME_CHARS_MAX = 128;
export const HEADER_VALUE_BYTES_MAX = 8_192;
export const HEADERS_BYTES_MAX = 16_384;

export const RETRIES_DEFAULT = 3;
export const RETRIES_MAX = 100;

export const WAIT_SECONDS_DEFAULT = 30;
export const WAIT_SECONDS_MAX = 120;
/** Requests of one account that may hang in `sync` or `wait` at a time; above it they answer at once. */
export const WAITERS_PER_ACCOUNT_MAX = 1_000;

/** Requests on one page of the inbox. */
export const HELD_LISTED_MAX = 20;
/** Of what a page counts, since the cost of a total would grow with the table. */
export const COUNTED_MAX = 1_000;
/** Newest actions for a host that are looked at to tell whether it was called before. */
export const HOST_ACTIONS_LOOKED_AT_MAX = 1_000;
/** Actions that one step of a bulk retry begins again. */
export const RETRY_BATCH_MAX = 50;
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

/** Open event streams of one account; above it the next is told to come back (hostile 1). */
export const EVENT_STREAMS_PER_ACCOUNT_MAX = 100;
/** Bytes that may wait for a reader of events; whoever is told more than that is closed, and may resume (hostile T29). */
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

/** People and their sessions (hostile 1 "Accounts", 7). */
export const PASSWORD_CHARS_MIN = 8;
export const PASSWORD_CHARS_MAX = 256;
/** Each takes 64 MiB and a core for 0.1 s: of more than these one waits for another. */
export const PASSWORD_HASHES_MAX = 2;
/** Log-ins and sign-ups that may wait for their turn, some 8 s; above it they are told to come back (503). */
export const PASSWORD_HASHES_WAITING_MAX = 128;
export const SESSION_MS_MAX = 7 * DAY_MS;
/** Of one person at a time; a further log-in ends the oldest. */
export const SESSIONS_PER_PERSON_MAX = 100;
export const WELCOME_LINK_MS_MAX = 7 * DAY_MS;
export const PASSWORD_LINK_MS_MAX = DAY_MS;
/** Wrong log-ins in a window, and how many addresses and clients are remembered in it. */
export const LOGIN_WINDOW_MS = MINUTE_MS;
export const WRONG_LOGINS_PER_ADDRESS_MAX = 5;
export const WRONG_LOGINS_PER_CLIENT_MAX = 100;
export const LOGINS_REMEMBERED_MAX = 10_000;
/** Bytes of a form that one of our own pages sends. */
export const FORM_BYTES_MAX = 65_536;
export const NEXT_CHARS_MAX = 2_048;

/** Both kinds of deduplication look this far back from now (spec "Limits"). */
export const DEDUPE_WINDOW_MS = DAY_MS;

/** After a rotation the secret before it signs too for so long (decisions 6). */
export const SIGNING_OVERLAP_MS = DAY_MS;
/** How long a process goes on with the signing secrets that it has read. */
export const SIGNING_SECRETS_FRESH_MS = MINUTE_MS;

/** Answers of targets (decisions 4). */
export const RESPONSE_BODY_BYTES_MAX = 262_144;
export const RETRY_AFTER_MS_MIN = SECOND_MS;
export const RETRY_AFTER_MS_MAX = DAY_MS;
export const ATTEMPT_TIMEOUT_MS_DEFAULT = 30 * SECOND_MS;
export const DNS_TIMEOUT_MS = 3 * SECOND_MS;
export const ADDRESSES_TRIED_MAX = 16;
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
/** Mails within an hour: to one recipient, and of one account (hostile 7). */
export const MAIL_WINDOW_MS = HOUR_MS;
export const MAILS_PER_RECIPIENT_MAX = 100;
export const MAILS_PER_ACCOUNT_MAX = 1_000;
/** Bytes of each part of a request that a mail shows; the whole stands behind its links. */
export const MAIL_PART_BYTES_MAX = 2_048;

/** A claim is the claimant's for the attempt's deadline and this much more to write the result down. */
export const LEASE_GRACE_MS = 15 * SECOND_MS;
export const RESCUE_EVERY_MS = 5 * SECOND_MS;
/** Rows that one rescue pass takes up; what is left is taken by the next pass, at once. */
export const RESCUE_ROWS_MAX = 500;
/** A timer never sleeps longer: a suspended machine or a jump of the clock costs at most this. */
export const SLEEP_MS_MAX = 30 * SECOND_MS;
/** A store that can't be opened at the start is tried again this often. */
export const OPEN_AGAIN_MS = SECOND_MS;
/** The wall clock may be set back by so much before what sleeps is rescheduled: small corrections are usual. */
export const CLOCK_TOLERANCE_MS = 5 * SECOND_MS;
/** Rows that one step of that takes up, so that it never holds the writer for long. */
export const RESCHEDULE_ROWS_MAX = 5_000;
export const DRAIN_MS_MAX = 30 * SECOND_MS;
/** A write that lost its race reads again and decides again this often. */
export const DECIDE_TRIES_MAX = 3;

/** Lanes (account and host) kept in memory; those beyond it are found by the sweep when there is room again. */
export const LANES_MAX = 50_000;
/** Due actions of one lane remembered by id; the rest is read from the store when these are sent. */
export const LANE_READY_MAX = 256;
/** Ids that one claim takes to the store. */
export const CLAIM_ROWS_MAX = 256;

/** Writes that may wait for one commit; above it a caller is told to come back (503). */
export const WRITES_WAITING_MAX = 20_000;
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

/** Agents that speak MCP. Text of a response that a tool result shows; the whole is read over REST (hostile M12). */
export const TOOL_RESPONSE_BYTES_MAX = 16_384;
/** Characters of a path or host in a question that is put to a person (hostile M11). */
export const QUESTION_CHARS_MAX = 200;
/** How long a question may be answered (hostile M1), and how many of one key's may be open where a call waits for it. */
export const QUESTION_MS = 10 * MINUTE_MS;
export const QUESTIONS_OPEN_MAX = 20;
/** A tool call that may not tell its progress ends after this: most clients give up after a minute. */
export const SILENT_WAIT_SECONDS_MAX = 50;
export const PROGRESS_EVERY_MS = 5 * SECOND_MS;
/** Sessions of 2025-era clients: of one account, and until one that nobody uses is closed (hostile M15). */
export const SESSIONS_PER_ACCOUNT_MAX = 20;
export const SESSION_IDLE_MS = 10 * MINUTE_MS;
export const SESSION_SWEEP_MS = MINUTE_MS;
/** A stream says something as often as this, so that nothing on the way takes it for dead. */
export const KEEP_ALIVE_MS = 10 * SECOND_MS;

export const RATE_WINDOW_MS = SECOND_MS;
/** A refusal of an account that floods waits about this long; beyond so many at a time they go out at once. */
export const REFUSAL_HELD_MS = SECOND_MS;
export const REFUSALS_HELD_MAX = 4_096;

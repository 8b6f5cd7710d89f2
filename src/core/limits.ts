/**
 * Every bound of the service, by subject. Numbers that limit growth belong here and nowhere else, so that one file shows
 * what the service never exceeds. A number of another kind that one file uses is in that file.
 */

const SECOND_MS = 1_000;
export const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;
/** The last millisecond of `Date` (ECMA-262, 21.4.1.1). */
export const DATE_MS_MAX = 8_640_000_000_000_000;
const MEGABYTE = 1_048_576;

// Requests

export const REQUEST_BODY_BYTES_MAX = MEGABYTE;
/** The body of a request without a proven key, session or link: enough for every form and request that needs none. */
export const UNPROVED_BODY_BYTES_MAX = 16_384;
/** Small chunks in a body without a length, and the size below which a chunk is small. Usual senders send larger ones. */
export const BODY_CHUNKS_MAX = 16_384;
export const SMALL_CHUNK_BYTES = 1_024;
/** Chunks of all bodies in one turn of the event loop, about 10 ms. In a turn with more, the second bound applies to each body. */
export const BODY_CHUNKS_PER_TURN_MAX = 16_384;
export const FULL_TURN_CHUNKS_MAX = 256;
export const JSON_DEPTH_MAX = 64;
export const JSON_MEMBERS_MAX = 10_000;
/** Bodies over `SMALL_BODY_BYTES` that the open requests of one key hold together; each costs about twice its size. */
export const HELD_BODY_BYTES_MAX = 64 * MEGABYTE;
export const SMALL_BODY_BYTES = 16_384;
/** Requests that begin in one turn of the event loop, each up to half a millisecond of it. */
export const REQUESTS_PER_TURN_MAX = 64;
export const REQUEST_ARRIVAL_MS_MAX = 30 * SECOND_MS;
/** How much of a refused body is still read and dropped, so that the client sees the response. */
export const REFUSED_BODY_BYTES_DROPPED_MAX = 4 * MEGABYTE;
export const REFUSED_BODY_MS_MAX = 2 * SECOND_MS;
/** Refused chunked bodies that are read at a time, each up to 10 ms of a turn. Other connections close at once. */
export const CHUNKED_BODIES_DROPPED_AT_ONCE_MAX = 2;
/** Refused bodies with a length above `UNPROVED_BODY_BYTES_MAX` that are read at a time, half a megabyte of each. */
export const LONG_BODIES_DROPPED_AT_ONCE_MAX = 32;
export const CHUNKS_DROPPED_PER_TURN_MAX = 256;
/** How long the connection then stays open and unread, because a reset could overtake the response while the client sends. */
export const REFUSED_BODY_LINGER_MS = 250;
/** Addresses and characters read from the end of an `X-Forwarded-For`. */
export const FORWARDED_ADDRESSES_MAX = 16;
export const FORWARDED_CHARS_MAX = 1_024;
/** Bytes of the details of an error, and of each text in it. */
export const ERROR_DETAILS_BYTES_MAX = 8_192;
export const ERROR_TEXT_BYTES_MAX = 1_024;
/** A form from one of our pages. */
export const FORM_BYTES_MAX = 65_536;
/** Room for each key that a credential may list (`CREDENTIAL_KEYS_MAX`), besides the other fields. */
export const FORM_FIELDS_MAX = 600;
/** Bytes of an editable body in a form's encoding: it must fit into the form with everything else. */
export const EDITED_BODY_BYTES_MAX = 40_960;
/**
 * Clients of OAuth begin with addresses of some thousands. Encoded twice, as in the address of the login page, one of letters and
 * codes fits into the 16 KB of a request's head.
 */
export const NEXT_CHARS_MAX = 8_192;
/** How long the page after a form can be reloaded, and characters of its message in one cookie. */
export const FLASH_MS_MAX = 5 * MINUTE_MS;
export const FLASH_COOKIE_CHARS_MAX = 3_500;
export const FLASH_COOKIES_MAX = 4;

// Rate limit, per account

export const RATE_WINDOW_MS = SECOND_MS;
/** From this many refusals in a second on, a key is flooding: it ignores Retry-After. */
export const RATE_FLOOD_REFUSALS = 2;
/** An account may exceed its rate by this factor in the second in which other keys begin to send while one floods. */
export const RATE_OVERSHOOT_MAX = 2;
/** How long refusals of a flooding key are delayed, and how many at a time. Others are sent at once. */
export const REFUSAL_HELD_MS = SECOND_MS;
export const REFUSALS_HELD_MAX = 4_096;

// Fields of an action

export const URL_CHARS_MAX = 8_192;
export const HEADERS_MAX = 64;
export const HEADER_NAME_CHARS_MAX = 128;
export const HEADER_VALUE_BYTES_MAX = 8_192;
export const HEADERS_BYTES_MAX = 16_384;
/** A dedupe or idempotency key. */
export const KEY_CHARS_MAX = 255;
export const REASON_CHARS_MAX = 1_000;
/** Pairs of name and value in a form as a body. */
export const FORM_PAIRS_MAX = 1_000;
export const TITLE_CHARS_MAX = 120;
export const METADATA_NAMES_MAX = 20;
export const METADATA_NAME_PATTERN = "^[A-Za-z0-9_.-]{1,64}$";
export const METADATA_VALUE_CHARS_MAX = 500;
export const EMAIL_CHARS_MAX = 254;
export const NAME_CHARS_MAX = 100;
export const ACCOUNT_NAME_CHARS_MAX = 80;
/** A host name has at most 253 characters; this includes scheme and port. */
export const ORIGIN_CHARS_MAX = 300;
export const RETRIES_DEFAULT = 3;
export const RETRIES_MAX = 100;
export const WAIT_SECONDS_DEFAULT = 30;
export const WAIT_SECONDS_MAX = 120;
/** Requests of an account that may wait (`sync` or `wait`) at a time. Above it, the oldest of the key with the most is answered. */
export const WAITERS_PER_ACCOUNT_MAX = 1_000;
/** The window of `dedupe` and `Idempotency-Key`. */
export const DEDUPE_WINDOW_MS = DAY_MS;

// Signatures that somebody asks about

/** Signatures compared in one header. A call has at most two. */
export const SIGNATURES_CHECKED_MAX = 16;
/** Likely changes are not tried on longer bodies. */
export const SIGNATURE_HINT_BYTES_MAX = 65_536;
/** Receivers should refuse a timestamp that differs by more (Standard Webhooks 1.0.0). */
export const SIGNATURE_TOLERANCE_MS = 5 * MINUTE_MS;

// Approvals

export const APPROVAL_LINK_MS = 7 * DAY_MS;
/** Actions of one key that may await approval at a time. Above it, creates are refused. */
export const HELD_PER_KEY_MAX = 10_000;
/** How often a decision is tried if other writes change the action first. */
export const DECIDE_TRIES_MAX = 3;
/** How long a rejection counts, and how often callers who may not approve may repeat its request meanwhile. */
export const REJECTION_WINDOW_MS = DAY_MS;
export const REPEATS_PER_REJECTION_MAX = 2;
/** Stored rejections and repeated requests of one key. A key with as many may request no more approvals. */
export const REJECTIONS_PER_KEY_MAX = 10_000;
/** Rejections of similar requests of a key are counted up to this number. */
export const SIMILAR_REJECTIONS_COUNTED_MAX = 100;
/** The newest rejections and repetitions of a request that an approver sees. */
export const EARLIER_REJECTIONS_SHOWN_MAX = 10;
/** Approvers are warned of larger requests. */
export const USUAL_URL_CHARS_MAX = 1_024;
export const USUAL_HEADERS_BYTES_MAX = 4_096;
export const USUAL_BODY_BYTES_MAX = 65_536;
/** Characters of a body whose escapes are decoded to find hidden characters. */
export const RISK_DECODED_CHARS_MAX = 65_536;
/** Parts of a request that name another method, as shown in its risk. */
export const RISK_OVERRIDES_SHOWN_MAX = 5;
/** Parts of a body, or items of a list in it, read to find a method. A body with more counts as naming an unknown one. */
export const OVERRIDES_READ_MAX = 1_000;
/** Characters of a name that may mean a method, including those that targets leave out. */
export const OVERRIDE_NAME_CHARS_MAX = 256;
/** Characters of a rejection's reason in its risk. The fact has all of it. */
export const RISK_REASON_CHARS_MAX = 200;
/** Held actions that one step of expiry scans, and how many it cancels at a time, since each is read whole. */
export const EXPIRE_SCAN_ROWS_MAX = 500;
export const EXPIRE_PARALLEL_MAX = 16;

// Lists and pages

export const LIST_LIMIT_DEFAULT = 20;
export const LIST_LIMIT_MAX = 100;
/** Bytes of bodies and headers on one page. The rest is on the next pages, and one action always fits. */
export const LIST_BYTES_MAX = 2 * MEGABYTE;
/** Rows that one page may scan. Rarer matches are on the next pages. */
export const LIST_SCAN_ROWS_MAX = 10_000;
/** Rows of one step of such a scan: SQLite reads on the event loop, which takes a few milliseconds. */
export const SEARCH_STEP_ROWS = 250;
/** Bytes of rows whose titles are read at once: titles come after the bodies, which SQLite must pass. */
export const SEARCH_STEP_BYTES = 4 * MEGABYTE;
/** Rows up to this size are short: their title is read with the rest. */
export const SEARCH_NEAR_BYTES = 4_096;
/** Characters that a step masks whether they match or not: the URLs of most of its rows, in 2 ms. */
export const SEARCH_MASKED_CHARS = 32_768;
/** Characters of a search text, and values of a parameter that may repeat. */
export const SEARCH_CHARS_MAX = 200;
export const SEARCH_VALUES_MAX = 20;
export const ACTIONS_SHOWN_MAX = 50;
/** Hosts and keys that a list offers to filter by. */
export const FILTER_VALUES_MAX = 50;
/** Ids in one filter: a selected page. They are part of URLs and of a bulk job's row. */
export const FILTER_IDS_MAX = 100;
/** Metadata conditions of one search. */
export const METADATA_FILTERS_MAX = 4;
/** Rows of a timeline in one response: enough for many runs of 100 attempts. Older ones are left out. */
export const TIMELINE_ROWS_MAX = 2_000;
/** How much of a body, and of a timeline at a time, a receipt shows to whoever has its link. */
export const RECEIPT_BODY_BYTES_MAX = 65_536;
export const RECEIPT_ATTEMPTS_MAX = 50;
export const RECEIPT_ROWS_MAX = 300;
/** Receipts that are read, masked and rendered at a time; how many others may wait, and for how long. */
export const RECEIPTS_AT_ONCE_MAX = 4;
export const RECEIPTS_WAITING_MAX = 256;
export const RECEIPT_WAIT_MS_MAX = 2 * SECOND_MS;
/** The newest pauses in the timeline of an action. */
export const TIMELINE_PAUSES_MAX = 100;
/** Pages count up to this number, since the cost of a total would grow with the table. */
export const COUNTED_MAX = 1_000;
/** Longer responses are not read for the target's message. Characters of a message in a list. */
export const TARGET_MESSAGE_BODY_CHARS_MAX = 4_096;
/** How much of a body a list reads to find what such a message repeats of it. Beside a longer body, it shows no message. */
export const ROW_BODY_CHARS_MAX = 65_536;
export const TARGET_MESSAGE_CHARS_MAX = 200;
export const HELD_LISTED_MAX = 50;
export const HELD_COUNTED_MAX = 10_000;
/** Keys whose held requests take turns on its pages, and hosts that it lists for them. */
export const HELD_KEYS_MAX = 1_000;
/** Keys that take turns on further pages, and the length of such a page's cursor: these keys and one page's. */
export const HELD_TURN_KEYS_MAX = 32;
export const HELD_CURSOR_CHARS_MAX = 8_192;
export const HELD_HOSTS_SHOWN_MAX = 50;
/** Look-alikes from which the inbox folds them into a row, fields that are compared, and fields that may differ. */
export const LOOK_ALIKES_MIN = 3;
export const LOOK_ALIKE_FIELDS_MAX = 60;
export const LOOK_ALIKE_COLUMNS_MAX = 8;
/** Characters of a look-alike's body, and of a field in it. */
export const LOOK_ALIKE_BODY_CHARS_MAX = 8_192;
export const LOOK_ALIKE_VALUE_CHARS_MAX = 200;
/** The most that one page of a review shows. One request always fits, and further ones are on the next page. */
export const REVIEW_BYTES_MAX = 65_536;
export const REVIEW_SELECTED_MAX = 200;
/** Decided requests that a page of the inbox reads at a time, each whole. */
export const DECIDED_READ_AT_ONCE_MAX = 8;
/** Lines and characters shown of a body whose request the address does not name. A button says so. */
export const BODY_BEGINNING_LINES_MAX = 60;
export const BODY_BEGINNING_CHARS_MAX = 4_000;
/** Characters of a body on its page. Of a longer one, only the beginning is shown, and the rest loads when opened. */
export const BODY_ON_PAGE_CHARS_MAX = 20_480;
/** Nodes and characters of a JSON tree. Further nodes become text in it, and a longer body is text. */
export const JSON_TREE_NODES_MAX = 6_000;
export const JSON_TREE_CHARS_MAX = 131_072;
/** Lines of a tree. A longer one has as many nodes, and the others become text in it. */
export const JSON_TREE_LINES_MAX = 600;
/** Nodes of a tree whose request the address does not name. */
export const JSON_BEGINNING_NODES_MAX = 150;
export const JSON_BEGINNING_CHARS_MAX = 16_384;
/** Keys that the inbox lists with their held actions, longest waiting first. */
export const HELD_REQUESTERS_SHOWN_MAX = 20;
export const BYTES_SHOWN_MAX = 4_096;
export const CODE_SAMPLE_CHARS_MAX = 16_384;
/** Characters that are masked on the event loop (4 ms at worst). Longer texts are masked on another thread. */
export const MASKED_INLINE_CHARS_MAX = 16_384;
/** Characters sent to the masking thread at a time. A single action may have more. */
export const MASKED_AT_ONCE_CHARS_MAX = 262_144;
/** Member names whose meaning is cached, each up to 256 characters. */
export const NAMES_READ_MAX = 1_000;
/** A longer JSON text is shown as it is: formatting would block the event loop (20 ms for a list of lists of one digit). */
export const PRETTY_JSON_CHARS_MAX = 262_144;
/** Formatted JSON may be this many times as long, or reach the length below. Otherwise it is shown as it is. */
export const PRETTY_JSON_GROWTH_MAX = 1.5;
export const PRETTY_JSON_GROWN_CHARS_MAX = 65_536;
export const NOTIFICATIONS_SHOWN_MAX = 50;
/** Held requests that one call decides on, and characters of the digest of one. */
export const DECISIONS_AT_ONCE_MAX = 50;
export const DIGEST_CHARS_MAX = 200;
/** Actions in one step of an export, open exports of an account, and how long one may wait for its reader or next match. */
export const EXPORT_PAGE_ACTIONS = 100;
export const EXPORTS_PER_ACCOUNT_MAX = 10;
export const IDLE_EXPORT_SECONDS = 240;
/** Groups by host and status that a dry run shows. */
export const BULK_GROUPS_SHOWN_MAX = 10;
/** Actions of one bulk job, and rows that it reads to find them. */
export const BULK_ACTIONS_MAX = 10_000;
export const BULK_SCAN_ROWS_MAX = 200_000;
/** Actions in one step of a bulk job. Jobs take turns by steps. */
export const BULK_STEP_ACTIONS = 50;
/** Bulk jobs of an account that may run at a time, how many are kept, and how long after their end. */
export const BULK_RUNNING_MAX = 10;
export const BULK_JOBS_MAX = 1_000;
export const BULK_KEPT_MS = 30 * DAY_MS;
/** Running jobs of all accounts that take a step in one round. */
export const BULK_ROUND_JOBS_MAX = 100;

// Overview

/** Minutes of a slot and number of slots in each range, so that a month reads as many rows as an hour. */
export const OVERVIEW_RANGES = {
  "1h": { slotMinutes: 1, slots: 60 },
  "24h": { slotMinutes: 30, slots: 48 },
  "7d": { slotMinutes: 180, slots: 56 },
  "30d": { slotMinutes: 720, slots: 60 },
} as const;
/** Hosts, and keys, that a slot counts by name. The others are counted together. */
export const ACTIVITY_NAMES_MAX = 50;
/** Rows of the timeline that one step counts in about ten milliseconds. */
export const ACTIVITY_STEP_ROWS = 1_000;
/** Pause between two steps, for other work. */
export const ACTIVITY_PAUSE_MS = 5;
/** Rows of the timeline that an overview counts before it is shown. If there are more, it says until when it counts. */
export const ACTIVITY_COUNTED_ROWS_MAX = 20_000;
export const ACTIVITY_PRUNE_ROWS = 1_000;
/** Newest actions read to find which first steps an account has taken. An account with as many needs no such list. */
export const FIRST_ACTIONS_READ_MAX = 100;
/** How many times its reading time an overview is cached, up to a maximum, and for how many accounts. */
export const OVERVIEW_FRESH_FACTOR = 10;
export const OVERVIEW_FRESH_MS_MAX = 5 * SECOND_MS;
export const OVERVIEW_ACCOUNTS_MAX = 1_000;
/** The busiest hosts and keys, and failing hosts, that an overview lists. */
export const OVERVIEW_NAMES_SHOWN_MAX = 10;
export const FAILING_HOSTS_SHOWN_MAX = 10;
/** Pending actions of an account that the overview scans, and hosts that it shows of their retries. */
export const PENDING_SCAN_ROWS_MAX = 10_000;
export const RETRY_HOSTS_SHOWN_MAX = 10;

// Event streams

/** Open event streams of one account. Above it, one of the key with the most is closed, or the new one is refused. */
export const EVENT_STREAMS_PER_ACCOUNT_MAX = 100;
/** Bytes that may wait for a slow reader of events. Above it, the stream is closed, and the client may resume. */
export const EVENT_BACKLOG_BYTES_MAX = MEGABYTE;
/** Proxies close streams that are silent for longer than this. */
export const EVENT_HEARTBEAT_MS = 12 * SECOND_MS;
/** Heartbeats after which a page's stream ends (a minute), so that the browser reconnects and its session is checked. */
export const PAGE_STREAM_HEARTBEATS_MAX = 5;
/** Events read at a time, and bytes of their bodies and headers. One always fits. */
export const EVENT_PAGE_MAX = 100;
export const EVENT_PAGE_BYTES_MAX = 262_144;
/** Rows of the timeline that are scanned before other work gets its turn: about a millisecond. */
export const EVENT_SCAN_ROWS_MAX = 10_000;

/** Positions of the event stream that a restored database leaves out: more than were given out since the backup. */
export const RESTORED_POSITIONS = 2 ** 40;

// Changes made by other nodes

/** How often a node reads other nodes' changes, and the least time between two reads after hints. */
export const NODE_POLL_MS = 2 * SECOND_MS;
export const NODE_READ_MS_MIN = 20;
/** Rows of one read, and reads of one round. A node further behind skips to the newest. */
export const NODE_CHANGES_MAX = 1_000;
export const NODE_PAGES_MAX = 10;
/** Changed actions that one round loads for watchers, and how many at a time (2.5 MB each at most). */
export const NODE_LOADS_MAX = 500;
export const NODE_LOADS_AT_ONCE_MAX = 4;
/** Watched actions whose revisions one statement reads. */
export const NODE_IDS_CHECKED_MAX = 1_000;
/** Least time between two hints of a node to the others. */
export const HINT_EVERY_MS = 10;
/** How often the connection for hints is checked, and reopened while the database is away. */
export const HINT_PING_MS = 10 * SECOND_MS;
export const HINT_RETRY_MS = SECOND_MS;
/** Least time between two looks for rows that other nodes stored. */
export const NODE_LOOK_MS_MIN = SECOND_MS;
/** Lanes of one such look. The next one continues after them. */
export const NODE_LOOK_LANES_MAX = 512;

// Accounts, keys and pauses

/** Origins in the list of signing secrets: of calls and of callbacks, the callbacks read for it, and the rotations. */
export const KNOWN_ORIGINS_MAX = 100;
export const CALLBACKS_SCANNED_MAX = 300;
export const SEEDS_LISTED_MAX = 500;
/** Live keys of an account, and keys in one list, live ones first. */
export const LIVE_KEYS_MAX = 500;
export const KEYS_LISTED_MAX = 1_000;
/** Hosts in the limits of a key. */
export const KEY_HOSTS_MAX = 50;
export const KEY_DAILY_ACTIONS_MAX = 1_000_000;
export const KEY_EXPIRY_YEARS_MAX = 10;
/** Today's actions of a key without a daily limit are counted up to this number. */
export const KEY_ACTIONS_COUNTED_MAX = 1_000;
export const KEYS_SHOWN_MAX = 50;
/** Length of a chain of keys that replaced each other. The last may act on the actions of all. */
export const REPLACED_KEYS_MAX = 1_000;
/** Accounts in one list, stopped ones first. */
export const ACCOUNTS_LISTED_MAX = 500;
/** Hosts of an account to which keys with a hold or a limit may send callbacks. */
export const CALLBACK_HOSTS_MAX = 100;
export const PAUSES_MAX = 1_000;
/** Unfinished actions of a key are counted up to this number when it is revoked. */
export const UNFINISHED_COUNTED_MAX = 1_000;
/** Unfinished actions of a revoked key that one step cancels. */
export const CANCEL_BATCH_MAX = 50;
export const SIGNING_OVERLAP_MS = DAY_MS;
export const SIGNING_SECRETS_FRESH_MS = MINUTE_MS;

// Audit log

/** Characters of a list in an entry. */
export const AUDITED_LIST_CHARS_MAX = 1_000;
/** Keys that an entry names; it says how many more there are. */
export const AUDITED_KEYS_MAX = 32;
/** Entries in one step of an export, rows of one read, and reads for a page with few matches. */
export const AUDIT_STEP_ROWS = 500;
export const AUDIT_SCAN_ROWS_MAX = 10_000;
export const AUDIT_SCANS_MAX = 10;
export const AUDIT_MENU_MAX = 40;
/** Characters of an actor in a query: a kind and an address. */
export const ACTOR_CHARS_MAX = 300;
/** Failed logins to one address in a window with an entry each. Further ones share an entry with their count. */
export const SIGN_IN_ENTRIES_MAX = { sign_in_failed: 10, sign_in_throttled: 1 } as const;
/** Addresses whose failed logins are counted at a time. Others have no entries. */
export const SIGN_INS_COUNTED_MAX = 10_000;

// People and their sessions

export const PASSWORD_CHARS_MIN = 8;
export const PASSWORD_CHARS_MAX = 256;
/** Concurrent password hashes: each takes 64 MiB and a core for 0.1 s. */
export const PASSWORD_HASHES_MAX = 2;
/**
 * Logins and sign-ups that may wait (about 8 s): for known devices, for others, and in one lane. Above it, they are refused
 * (503).
 */
export const PASSWORD_HASHES_WAITING_MAX = 128;
export const PASSWORD_HASHES_WAITING_PER_LANE_MAX = 32;
/** Clients whose tries with one address are counted while any runs or waits. Of each, only one may wait. */
export const PASSWORD_HASH_CLIENTS_COUNTED_MAX = 1_000;
/** Turns of known devices in a row before another device's, so that known people can't keep strangers waiting. */
export const PASSWORD_HASHES_OF_KNOWN_IN_A_ROW_MAX = 2;
export const SESSION_MS_MAX = 7 * DAY_MS;
/** Sessions of one person. A further login ends the oldest. */
export const SESSIONS_PER_PERSON_MAX = 100;
export const WELCOME_LINK_MS_MAX = 7 * DAY_MS;
export const PASSWORD_LINK_MS_MAX = DAY_MS;
export const INVITATION_MS_MAX = 7 * DAY_MS;
export const INVITATIONS_OPEN_MAX = 100;
/** Open invitations of one address, in all accounts, that a login reads to find a valid one. */
export const INVITATIONS_OF_ADDRESS_READ_MAX = 10;
export const PEOPLE_PER_ACCOUNT_MAX = 500;
/** The last used accounts of a person that the pages offer. */
export const ACCOUNTS_OF_PERSON_SHOWN_MAX = 100;
/** The least time between two updates of when a session was last used. */
export const SESSION_SEEN_EVERY_MS = 5 * MINUTE_MS;
export const BROWSER_CHARS_MAX = 200;
/** Time from the button to the OpenID provider's answer, and for each call to it. */
export const OIDC_FLOW_MS_MAX = 10 * MINUTE_MS;
export const OIDC_CALL_MS_MAX = 10 * SECOND_MS;
/** How long a provider's metadata is used, and how long one that can't be reached is not asked again. */
export const OIDC_FRESH_MS = 60 * MINUTE_MS;
export const OIDC_PAUSE_MS = 5 * SECOND_MS;
/** Sign-ins with a provider that a client may begin or end in a window of logins, since each calls the provider. */
export const OIDC_PER_CLIENT_MAX = 40;
/** How long a browser counts as a known device. Chrome keeps no cookie longer. */
export const DEVICE_MS_MAX = 400 * DAY_MS;
/** Failed logins and sign-ups in a window, and how many names of each kind are counted. */
export const LOGIN_WINDOW_MS = MINUTE_MS;
export const WRONG_LOGINS_PER_ACCOUNT_AND_CLIENT_MAX = 5;
export const SIGN_UPS_PER_CLIENT_MAX = 20;
export const WRONG_LOGINS_PER_CLIENT_MAX = 100;
export const LOGINS_REMEMBERED_MAX = 10_000;

// Calls to targets

export const ATTEMPT_TIMEOUT_MS_DEFAULT = 30 * SECOND_MS;
/**
 * After a deadline, the event loop still gets turns of so many milliseconds, to read what has arrived in time. After a late
 * deadline, when the process was blocked and has much to read: at least so many turns, a tenth of the delay, at most two
 * seconds.
 */
export const DEADLINE_TURN_MS = 10;
export const DEADLINE_TURNS = 2;
export const DEADLINE_LATE_MS = 20;
export const DEADLINE_TURNS_LATE = 12;
export const DEADLINE_LATE_SHARE = 0.1;
export const DEADLINE_TURNS_MAX = 200;
export const DNS_TIMEOUT_MS = 3 * SECOND_MS;
/** How long DNS is asked about a name that mDNS may know. */
export const LOCAL_DNS_TIMEOUT_MS = SECOND_MS;
/** Of the file of hosts, where a name is looked for that mDNS may know. */
export const HOSTS_FILE_BYTES_MAX = MEGABYTE;
export const ADDRESSES_TRIED_MAX = 16;
/** How long one address may take to accept a connection, within the attempt's deadline, before the next one is tried. */
export const CONNECT_TIMEOUT_MS = 3 * SECOND_MS;
/** How long an address that accepted a connection is not probed again, and how many such addresses are remembered. */
export const CONNECTABLE_FRESH_MS = 250;
export const CONNECTABLE_REMEMBERED_MAX = 1_024;
/** Parsed URLs in the cache, which is emptied when full, and the longest of them: a megabyte in all. */
export const PARSED_TARGETS_MAX = 1_024;
export const PARSED_TARGET_CHARS_MAX = 512;
/**
 * Connections to targets that stay open between calls, in use or not: in all, and of one kind (plain, or checked against
 * one name), of which Bun keeps as many. How long one may be unused, and how long it may be used.
 */
export const KEPT_CONNECTIONS_MAX = 256;
export const KEPT_CONNECTIONS_PER_KIND_MAX = 64;
export const KEPT_CONNECTION_IDLE_MS = 2 * SECOND_MS;
export const KEPT_CONNECTION_LIFE_MS = MINUTE_MS;
/** How long no connection is kept after a target ended one in use, and how many such targets are remembered. */
export const KEPT_PAUSE_MS = MINUTE_MS;
export const KEPT_PAUSES_MAX = 1_024;
export const INTERFACES_FRESH_MS = SECOND_MS;
export const RESPONSE_BODY_BYTES_MAX = 262_144;
export const LOCATION_CHARS_MAX = 2_048;
/** Headers kept of a response, their bytes in all, and characters of a name or value. */
export const RESPONSE_HEADERS_MAX = 40;
export const RESPONSE_HEADERS_BYTES_MAX = 4_096;
export const RESPONSE_HEADER_CHARS_MAX = 512;
/** The newest attempts whose responses are kept and shown, and bytes of each body. */
export const ATTEMPTS_KEPT = 5;
export const ATTEMPT_BODY_BYTES_MAX = 16_384;
export const RETRY_AFTER_MS_MIN = SECOND_MS;
export const RETRY_AFTER_MS_MAX = DAY_MS;
export const RETRY_BASE_MS_DEFAULT = 2 * SECOND_MS;
export const RETRY_CAP_MS_DEFAULT = HOUR_MS;
/** Bounds of RETRY_BASE_MS and RETRY_CAP_MS. */
export const RETRY_BASE_MS_MAX = DAY_MS;
export const RETRY_CAP_MS_MAX = 7 * DAY_MS;
export const RETRY_JITTER = 0.2;
/** Bounds of what actions, hosts and accounts may set instead: `timeout_ms`, `backoff` and `give_up_on`. */
export const ATTEMPT_TIMEOUT_SET_MS_MIN = SECOND_MS;
export const ATTEMPT_TIMEOUT_SET_MS_MAX = 2 * MINUTE_MS;
export const BACKOFF_BASE_MS_MIN = 100;
export const BACKOFF_BASE_MS_MAX = HOUR_MS;
export const BACKOFF_CAP_MS_MAX = DAY_MS;
export const GIVE_UP_ON_MAX = 50;
/** How far ahead an action may be sent, and expire. */
export const DELAY_SECONDS_MAX = 31_536_000;
export const RUN_AT_AHEAD_MS_MAX = 366 * DAY_MS;
export const EXPIRES_AHEAD_MS_MAX = 731 * DAY_MS;
export const EXPIRED_ROWS_MAX = 500;
/** Channels of an account, and addresses of one. */
export const CHANNELS_MAX = 20;
export const CHANNEL_ADDRESSES_MAX = 20;
/** When a question may be repeated: five minutes to a week after the first. */
export const REMIND_MINUTES_MIN = 5;
export const REMIND_MINUTES_MAX = 10_080;
/** Time for a message to a channel; a test gives up after as long. */
export const MESSAGE_TIMEOUT_MS = 10 * SECOND_MS;
/** Messages to channels in flight: in all, and of one account to one channel. */
export const MESSAGES_IN_FLIGHT_MAX = 32;
export const MESSAGES_PER_CHANNEL_MAX = 2;
/** Pause between two channel tests of an account, and its tests within an hour. */
export const CHANNEL_TEST_EVERY_MS = SECOND_MS;
export const CHANNEL_TESTS_PER_HOUR_MAX = 30;
/** Accounts whose tests are counted. Beyond it, the oldest is forgotten. */
export const CHANNEL_TESTERS_REMEMBERED_MAX = 10_000;
/** Characters of a fact in a chat message (which takes 2,000, and 5 for an ampersand), and facts in one. */
export const MESSAGE_FACT_CHARS_MAX = 390;
export const MESSAGE_FACTS_MAX = 30;
/** Lines of a body in such a message, and their characters as written (a section takes 3,000). */
export const MESSAGE_BODY_LINES_MAX = 40;
export const MESSAGE_BODY_CHARS_MAX = 1_024;
export const MESSAGE_LINES_CHARS_MAX = 2_900;
export const HOST_SETTINGS_MAX = 500;
export const CALLS_PER_SECOND_MIN = 0.01;
export const CALLS_PER_SECOND_MAX = 10_000;
/** A host with a rate may get the calls of this time at once. They count for the rate of the second. */
export const RATE_BURST_MS = 20;
/**
 * How long the second of such a rate is where calls leave, and how much earlier one may leave than its turn, since timers are late.
 * The rest is for two calls that take unequally long to arrive.
 */
export const RATE_SECOND_MS = SECOND_MS + 20;
export const RATE_EARLY_MS = 5;
/** Nothing more is claimed for a host with a rate if it would wait this long to leave. */
export const CLAIM_AHEAD_MS = 100;
/** The most that a call waits to leave: a quarter of the shortest timeout that an account can set, since it counts for that. */
export const BEGIN_WAIT_MS_MAX = ATTEMPT_TIMEOUT_SET_MS_MIN / 4;
/** How long actions wait for a callback whose turn it is to call their host, and callbacks for an action. */
export const OWED_TURN_MS = SECOND_MS;

// Queue and delivery

/** Lanes (account, host and key) in memory. The sweep finds the others when there is room again. */
export const LANES_MAX = 50_000;
/** Metrics count waiting rows up to this number. */
export const METRIC_COUNT_MAX = 100_000;
/** Lanes that metrics scan for the action that has been due longest: a few milliseconds. */
export const DUE_LANES_SCANNED_MAX = 1_000;
/** How long a create waits for a slot of its host, besides the time that the last one took to be stored, and the most of both. */
export const CREATE_WAIT_MS = 100;
export const CREATE_WAIT_MS_MAX = 1_000;
/** Creates of a process that wait at a time. */
export const CREATES_WAITING_MAX = 512;
/** Rows of one claim, and their bytes. One always fits. */
export const CLAIM_ROWS_MAX = 256;
export const CLAIM_BYTES_MAX = 524_288;
/** Attempts that begin or go on in one turn of the event loop, so that callers get responses in between. */
export const ATTEMPTS_PER_TURN_MAX = 16;
/** Claims that a scheduler may write at a time. Slots that become free meanwhile share the next one. */
export const CLAIMS_AT_ONCE_MAX = 2;
/** How often a process that had no free file for a call looks whether there is one again. */
export const NO_FILE_LOOK_MS = SECOND_MS;
/** Delay before a claim is tried again if too many writes are waiting. */
export const CLAIM_RETRY_MS = 250;
/** Claims for which the store reported neither success nor failure. Beyond it, the oldest wait until their lease ends. */
export const UNCONFIRMED_CLAIMS_MAX = 4_096;
/** Larger rows need memory besides a slot, and only one claim at a time takes some. */
export const SMALL_ROW_BYTES_MAX = 16_384;
/** Free memory that a claim of large rows needs: the largest row, a callback with a whole request and answer, fits. */
export const LARGE_ROW_BYTES = 1_572_864;
/** Bytes of large actions, and of large callbacks, in flight. One always fits. */
export const ACTION_BYTES_IN_FLIGHT_MAX = 12 * MEGABYTE;
export const CALLBACK_BYTES_IN_FLIGHT_MAX = 6 * MEGABYTE;
/** Bytes of large rows after which the garbage collector is started, if the heap is not above the second size. */
export const LARGE_GARBAGE_BYTES_MAX = 16 * MEGABYTE;
export const COLLECTED_HEAP_BYTES_MAX = 48 * MEGABYTE;
/** A lease lasts for the attempt's timeout and this much more, to write the result. */
export const LEASE_GRACE_MS = 15 * SECOND_MS;
/** A lease that ends further in the future is from before the clock was set back. */
export const LEASE_MS_MAX = HOUR_MS + 2 * LEASE_GRACE_MS;
/** The part of a lease reserved for writing the result, and the least time left before it for an attempt to begin. */
export const LEASE_WRITE_MS = 5 * SECOND_MS;
export const ATTEMPT_MS_MIN = SECOND_MS;
/** Bytes of attempt results that could not be written yet. Above it, nothing is claimed. */
export const UNWRITTEN_RESULTS_BYTES_MAX = 64 * MEGABYTE;
/** Bytes of an unwritten result without its texts. */
export const UNWRITTEN_RESULT_BYTES = 2_048;
/** Delay before an unwritten result is tried again, doubled each time up to the maximum. */
export const RESULT_RETRY_MS = 250;
export const RESULT_RETRY_MS_MAX = 2 * SECOND_MS;
/** How often expired leases are recovered, and rows and bytes of one step. One row always fits. */
export const RECOVERY_INTERVAL_MS = 5 * SECOND_MS;
export const RECOVERY_ROWS_MAX = 500;
export const RECOVERY_BYTES_MAX = 2 * MEGABYTE;
/** The longest timer, so that a suspended machine or a jump of the clock delays work by at most this. */
export const SLEEP_MS_MAX = 30 * SECOND_MS;
/** The wall clock may be set back by this much before waiting actions are rescheduled; small corrections are normal. */
export const CLOCK_TOLERANCE_MS = 5 * SECOND_MS;
/** Rows that one step of rescheduling updates, so that it never blocks the writer for long. */
export const RESCHEDULE_ROWS_MAX = 5_000;
export const DRAIN_MS_MAX = 30 * SECOND_MS;
/** Time after the drain for writing interrupted attempts and results that could not be written yet. */
export const DRAIN_WRITE_MS = SECOND_MS / 2;

// Callbacks and mails

/** Delays between attempts, ± `RETRY_JITTER`. After the last one, the notification is given up. */
export const NOTIFY_DELAYS_MS = [5 * SECOND_MS, 30 * SECOND_MS, 5 * MINUTE_MS, 30 * MINUTE_MS, 2 * HOUR_MS] as const;
/** Callbacks in flight: in all, and from one account to one host. */
export const CALLBACKS_IN_FLIGHT_MAX = 64;
export const CALLBACKS_PER_HOST_MAX = 16;
/** Mails in flight: in all, and from one account to one recipient, who gets them in order. */
export const MAILS_IN_FLIGHT_MAX = 8;
export const MAILS_AT_ONCE_MAX = 1;
/** Mails within an hour: to one recipient, and of one account. */
export const MAIL_WINDOW_MS = HOUR_MS;
export const MAILS_PER_RECIPIENT_MAX = 100;
/** To one address from all accounts of its person together. Addresses of those who sign up are not verified. */
export const MAILS_PER_PERSON_MAX = 300;
export const MAILS_PER_ACCOUNT_MAX = 1_000;
/** Bytes of each part of a request in a mail. The page behind its links shows the whole. */
export const MAIL_PART_BYTES_MAX = 2_048;
/** Characters of a host in a mail's subject, of which many clients show 40. Its end is kept. */
export const SUBJECT_HOST_CHARS_MAX = 32;
/** Characters of a path and of a title in the subject of a mail, and of the id, which distinguishes equal requests. */
export const SUBJECT_PATH_CHARS_MAX = 40;
export const SUBJECT_TITLE_CHARS_MAX = 48;
export const SUBJECT_ID_CHARS = 6;

// Store

/** Timeout of a database call. Its caller gets 503. */
export const STORE_CALL_MS_MAX = 4 * SECOND_MS;
/** Shorter, so that the outage is known before callers that wait for a commit get an error and try again. */
export const REMOTE_CALL_MS_MAX = STORE_CALL_MS_MAX - 200;
/** Shorter still: PostgreSQL's own bound for a statement, and for a transaction of a frozen process. */
export const TRANSACTION_MS_MAX = REMOTE_CALL_MS_MAX - 300;
/**
 * How long a migration waits for a table, for which all writes of running nodes then wait. Longer than PostgreSQL waits before it ends
 * an autovacuum that is in the way (`deadlock_timeout`), and less than a write of theirs may take.
 */
export const MIGRATION_LOCK_MS_MAX = 1_500;
/** How long a migration's connection is silent before the system checks whether the server's machine is alive. */
export const MIGRATION_KEEP_ALIVE_MS = 10 * SECOND_MS;
/** Connections of a node for reads; it has one more for writes, and one for hints. */
export const POSTGRES_READERS = 4;
/** Timeout of a readiness check, and how long its result is cached. */
export const READY_MS_MAX = 1_500;
export const READY_FRESH_MS = SECOND_MS;
export const COUNTS_FRESH_MS = 10 * SECOND_MS;
/** How often a service looks whether its database file and its log are still those at their paths. */
export const FILE_LOOK_MS = SECOND_MS;
/** How often, and how long, a service tries to save the content of a deleted log while others read the file or the disk is full. */
export const LOG_SAVE_EVERY_MS = 100;
export const LOG_SAVE_MS_MAX = 10 * MINUTE_MS;
/** The lock of a service on a remote database lasts this long, and is renewed this often. */
export const SERVICE_LOCK_MS = 15 * SECOND_MS;
export const SERVICE_LOCK_BEAT_MS = 3 * SECOND_MS;
/** Symbolic links in a row that lead to a database file: as many as Linux follows. */
export const LINKS_FOLLOWED_MAX = 40;
/** Characters shown of an action's members that only another version knows. */
export const UNKNOWN_EXTRAS_CHARS_SHOWN = 2_000;
/** How often a start without its store begins again, and how often a store that went away later is checked. */
export const STORE_RETRY_MS = SECOND_MS;
/** Writes that may wait for one commit, and their bytes. Above it, callers get 503. */
export const WRITES_WAITING_MAX = 20_000;
export const WRITES_WAITING_BYTES_MAX = 32 * MEGABYTE;
export const FLUSH_ROWS_MAX = 1_000;
/** Bytes of payload in one commit, so that large bodies do not block the event loop. */
export const FLUSH_BYTES_MAX = 8 * MEGABYTE;
/** Actions that one step of retention scans, and rows and bytes that it deletes in one commit. */
export const PRUNE_SCAN_ROWS_MAX = 200;
export const PRUNE_ROWS_MAX = 500;
export const PRUNE_BYTES_MAX = 4 * MEGABYTE;
/** Pause between two steps, for other writes. */
export const PRUNE_PAUSE_MS = 20;
/** Free pages of a database file that one commit gives back to the system: 4 ms. */
export const SHRINK_PAGES = 256;
/** Free pages kept for the next rows: this many, or one in ten of the file's. */
export const FREE_PAGES_KEPT = 1_024;
export const FREE_PAGES_KEPT_PART = 10;
/** Actions read to estimate what retention would free. */
export const SIZE_SAMPLE_ROWS = 300;
/** Encrypted texts in one commit of a rotation of the master key: at most 5 MB. */
export const RESEAL_ROWS_MAX = 200;
/** Texts listed that could not be decrypted. The rest is counted. */
export const UNDECRYPTABLE_LISTED_MAX = 10;

// Nodes on one database

/** How often a node reports that it lives, and after how long without a report it counts as dead. */
export const NODE_BEAT_MS = 5 * SECOND_MS;
export const NODE_LIVES_MS = 15 * SECOND_MS;
/** How often a joining node checks whether all others know of it. */
export const NODE_JOIN_BEAT_MS = SECOND_MS;
/** How often the database's clock is read, and how many times in a row: the quickest answer counts. */
export const CLOCK_READ_EVERY_MS = 10 * SECOND_MS;
export const CLOCK_READS = 3;
/** If a node's own clocks differ by more, it was suspended, and reads the database's clock. */
export const CLOCK_DOUBT_MS = SECOND_MS;
/** A node's right to run a job lasts this long, and is renewed this often while the job runs. */
export const JOB_LEASE_MS = 15 * SECOND_MS;
/** A lease that ends further in the future is void: it is from before the database's clock was set back. */
export const JOB_LEASE_MS_MAX = MINUTE_MS;
export const JOB_RENEW_MS = 5 * SECOND_MS;
/** How long no other node runs a job after it has ended, since all nodes begin it at about the same time. */
export const JOB_REST_MS = 20 * SECOND_MS;
/** How often a starting node checks whether another starting node is done, and for how long. */
export const START_LOOK_MS = 200;
export const START_WAIT_MS_MAX = 2 * MINUTE_MS;
/** How long a start holds requests that come meanwhile, and how many at a time. Others get 503. */
export const START_HOLD_MS_MAX = 5 * SECOND_MS;
export const START_HELD_MAX = 200;
/** How long a stop waits for a start's current step. */
export const START_STEP_STOP_MS = 5 * SECOND_MS;
/** How long a node that made the first keys may take to show them before another node does. */
export const FIRST_KEYS_LEASE_MS = 30 * SECOND_MS;
/** How soon another node's changes of keys, sessions, pauses and secrets take effect. */
export const SHARED_FRESH_MS = 5 * SECOND_MS;
/** How long after a key's revocation another node may still store its creates, even slow ones. */
export const REVOKED_KEY_TAKEN_MS_MAX = 2 * SHARED_FRESH_MS;
/** How often pauses, revoked keys and sessions with open streams are read. With the time of a read, less than that. */
export const SHARED_READ_EVERY_MS = 3 * SECOND_MS;
/** Keys that one read checks for a revocation, and sessions read at a time. */
export const KEYS_READ_AT_ONCE_MAX = 1_000;
export const SESSIONS_READ_AT_ONCE_MAX = 32;

// MCP

/** Bytes of JSON in the result of a tool. Longer JSON is cut and says so. REST shows the whole. */
export const TOOL_RESULT_BYTES_MAX = 16_384;
/** Bytes of these kept free for notes about cuts. */
export const TOOL_NOTES_BYTES = 1_024;
/** Bytes of one action in a list, and how many of them fit in a result. */
export const TOOL_ROW_BYTES_MAX = 400;
export const TOOL_ROW_NAME_BYTES_MAX = 24;
export const TOOL_ROWS_MAX = 40;
export const TOOL_REQUESTS_MAX = 10;
/** Secrets of headers searched for in a response, and the shortest of them. */
export const ECHOES_MAX = 16;
export const ECHO_CHARS_MIN = 8;
/** How much of the end of a cut answer is hidden at most, where it may be the beginning of a secret. */
export const CUT_SECRET_CHARS_MAX = 1_024;
export const TOOL_NAME_CHARS_SHOWN = 100;
/** How long a question stays open, and how many open questions of one key may block a call. */
export const QUESTION_MS = 10 * MINUTE_MS;
export const QUESTIONS_OPEN_MAX = 20;
export const QUESTION_BODY_CHARS_MAX = 1_024;
export const QUESTION_BODY_LINES_MAX = 40;
/** Bytes of a whole question: more than the longest URL and callback. Long lines are cut unless they say where the call goes. */
export const QUESTION_BYTES_MAX = 24_576;
export const QUESTION_LINE_CHARS = 200;
/** When a tool call without progress notifications ends, since most clients give up after a minute. */
export const SILENT_WAIT_SECONDS_MAX = 50;
export const PROGRESS_EVERY_MS = 5 * SECOND_MS;
/** Sessions of 2025-era clients: default per account, and idle time after which one is closed. */
export const MCP_SESSIONS_PER_ACCOUNT_DEFAULT = 20;
export const SESSION_IDLE_MS = 10 * MINUTE_MS;
export const SESSION_SWEEP_MS = MINUTE_MS;
/** How long a session id is valid that any node can check. */
export const NODE_SESSION_MS_MAX = DAY_MS;
/** Interval of keep-alives on a stream, so that no proxy closes it. */
export const KEEP_ALIVE_MS = 10 * SECOND_MS;

// Receipts, which reload themselves until they are final

export const RECEIPT_RELOAD_SECONDS_MIN = 2;
export const RECEIPT_RELOAD_SECONDS_MAX = 60;

// Documentation, which needs no login

export const API_NESTING_MAX = 4;
export const DOCS_QUERY_CHARS_MAX = 100;
export const DOCS_QUERY_WORDS_MAX = 8;
export const DOCS_HITS_MAX = 20;
/** Parts of pages that are indexed in one turn of the event loop. */
export const DOCS_INDEXED_AT_ONCE = 20;
/** Characters of the text shown around a match. */
export const DOCS_SNIPPET_CHARS = 180;

// Settings of the server

export const PORT_MAX = 65_535;
export const RATE_LIMIT_SETTING_MAX = 1_000_000;
export const MCP_SESSIONS_SETTING_MAX = 10_000;
export const ATTEMPT_TIMEOUT_SETTING_MS_MAX = HOUR_MS;
/** One less than Bun can make at a time, because callbacks and mails need calls too. */
export const DISPATCH_SETTING_MAX = 65_534;
export const RETENTION_SETTING_DAYS_MAX = 36_500;
export const APPROVAL_TTL_SETTING_HOURS_MAX = 87_600;

// Log

/** Lines are written together once the first is this old, or once they have this many characters. */
export const LOG_GATHERED_MS = 10;
export const LOG_GATHERED_CHARS_MAX = 65_536;
/** What is kept of the log while its reader is slow. */
export const LOG_KEPT_BYTES_MAX = 1_048_576;

// Migration from a file to PostgreSQL

/** Rows and bytes of one commit. */
export const TRANSFER_ROWS_MAX = 500;
export const TRANSFER_BYTES_MAX = 4 * MEGABYTE;
export const TRANSFER_CALL_MS_MAX = MINUTE_MS;

// Rules

export const RULES_MAX = 500;
/** Characters of all rules of an account: each change reads and writes all of them, and every node has them in memory. */
export const RULES_CHARS_MAX = MEGABYTE;
export const RULE_EXPRESSION_BYTES_MAX = 4_096;
/** Characters of a `like` pattern, and instructions of an expression's patterns. A search may run each at each character. */
export const RULE_PATTERN_CHARS_MAX = 500;
export const RULE_PATTERN_SIZE_MAX = 1_500;
/** Steps of one check of an expression. A step takes about 50 ns. Lists and texts cost by their length. */
export const RULE_STEPS_MAX = 100_000;
/** Steps of all rules together, for one request. */
export const RULES_STEPS_MAX = 500_000;
/** Longer lists can be counted and searched, but no macro runs over them. */
export const RULE_LIST_MEMBERS_MAX = 1_000;
/** Expressions can't read longer or deeper bodies. */
export const RULE_BODY_CHARS_MAX = 262_144;
export const RULE_BODY_DEPTH_MAX = 64;
/** Members of one list of a rule: keys, methods, hosts. */
export const RULE_LIST_MAX = 100;
export const RULE_PATH_CHARS_MAX = 1_024;
/** Checked for all rules at once, before one is judged: this many comparisons of each expression, and segments of a path. */
export const RULE_NEEDS_MAX = 4;
export const RULE_MESSAGE_CHARS_MAX = 500;
/** Path of the member that a budget adds up, and a name of metadata that it counts by. */
export const BUDGET_MEMBER_CHARS_MAX = 200;
/** Decimals, and digits before them, of numbers that a budget adds up. Rules can't decide on others. */
export const BUDGET_DECIMALS_MAX = 9;
export const BUDGET_DIGITS_MAX = 30;
export const BUDGET_COUNT_MAX = 1_000_000;
export const BUDGET_MINUTES_MAX = 10_080;
/** How long counts are kept after their window, since nodes' clocks differ and an action may be cancelled later. */
export const BUDGET_KEPT_MS = 2 * DAY_MS;
/** Comparisons with earlier rules, and of their lists and paths, to find rules that never apply: about 30 ms. */
export const RULE_WARNING_STEPS_MAX = 150_000;
/** The newest actions on which a new or changed rule is tried. */
export const RULE_DRAFT_ACTIONS = 100;
/** The list of rules shows the hits of this time, and of at most this many calls that were held or let pass. */
export const RULE_HITS_MS = 7 * DAY_MS;
export const RULE_HITS_MAX = 1_000;
export const RULE_UNDO_MS_MAX = DAY_MS;
/** How long a loop over many rules or actions may hold the event loop, besides its last step. */
export const TURN_MS_MAX = 5;
/** Actions on a page of a dry run, and how many it tries by default and at most. */
export const DRY_RUN_PAGE_ACTIONS = 100;
export const DRY_RUN_ACTIONS_DEFAULT = 1_000;
export const DRY_RUN_ACTIONS_MAX = 100_000;
/** Actions that a dry run lists, and cancelled ones whose timelines it reads. */
export const DRY_RUN_SHOWN_MAX = 100;
export const DRY_RUN_TIMELINES_MAX = 1_000;
export const DRY_RUNS_PER_ACCOUNT_MAX = 2;
/** How often a create is decided again because rules were written meanwhile. */
export const RULE_TRIES_MAX = 5;

// Grants

export const GRANTS_MAX = 200;
/** Grants in one list: first those in force, then some that are used up. */
export const GRANTS_LISTED_MAX = 500;
export const GRANT_MINUTES_MAX = 10_080;
export const GRANT_CALLS_MAX = 1_000;
/** Members of the body that may differ. */
export const GRANT_VARY_MAX = 5;
/** Longer bodies, or those with more values, can't be compared. */
export const GRANT_BODY_CHARS_MAX = 65_536;
export const GRANT_FIELDS_MAX = 500;
/** Values in the form of a grant. Each takes up to two of the fields that a form may have. */
export const GRANT_FIELDS_SHOWN_MAX = 40;

// Credentials

export const CREDENTIALS_MAX = 200;
/** The credentials for a host, apart from the call's own, that its answers are searched for: those used last. */
export const CREDENTIALS_HIDDEN_PER_HOST_MAX = 5;
export const CREDENTIAL_HOSTS_MAX = 20;
export const CREDENTIAL_PATHS_MAX = 50;
/** Characters of all paths of a credential: every node has all credentials in memory, and a list shows them whole. */
export const CREDENTIAL_PATHS_CHARS_MAX = 8_192;
export const CREDENTIAL_KEYS_MAX = 500;
/** A shorter secret would be found in any answer. */
export const CREDENTIAL_SECRET_CHARS_MIN = 8;
export const CREDENTIAL_SECRET_CHARS_MAX = 4_096;
/** Parts such as escapes that one turn reads in search of a credential, in a few milliseconds. */
export const ECHO_PARTS_PER_TURN = 8_192;
/** For the search of one answer, waiting included. Begins at the deadline of the attempt at the latest, so that its claim still holds. */
export const ECHO_MS_MAX = LEASE_GRACE_MS - LEASE_WRITE_MS;
export const CREDENTIAL_TEST_BODY_CHARS_MAX = 4_096;
/** Characters of the signed text, and of the header's value. */
export const CREDENTIAL_TEMPLATE_CHARS_MAX = 500;
/** How long notifications about an end are remembered: longer than one is sent. */
export const CREDENTIAL_ALERTS_KEPT_MS = 30 * DAY_MS;
export const CREDENTIAL_USE_DAYS = 7;
/** Hosts that are noted as having sent a secret back. */
export const CREDENTIAL_ECHOES_MAX = 20;
export const CREDENTIAL_REQUEST_MS = 7 * DAY_MS;
export const CREDENTIAL_REQUESTS_PER_KEY_MAX = 5;
/** Pending requests of an account: all of them are on one page. */
export const CREDENTIAL_REQUESTS_PENDING_MAX = 50;
/** Requests of a key within 24 hours: each one is a mail to every owner. */
export const CREDENTIAL_REQUESTS_PER_DAY_MAX = 10;
/** How long a decline also answers repeats of the request. */
export const CREDENTIAL_DECLINED_MS = DAY_MS;
/** How long requests are kept after the time at which they expire. */
export const CREDENTIAL_REQUESTS_KEPT_MS = 30 * DAY_MS;
/** Suggestions in a request, which a person must read. */
export const CREDENTIAL_REQUEST_PATHS_MAX = 10;
export const CREDENTIAL_REQUEST_PATH_CHARS_MAX = 200;
/** Owners and channels notified of a request: owners first, in the order in which they joined. */
export const CREDENTIAL_REQUEST_RECIPIENTS_MAX = 20;

// OAuth for /mcp

/** Codes and tokens kept of one connection. Used ones too, since they reveal that a token is used twice. */
export const OAUTH_TOKENS_PER_GRANT_MAX = 100;
/** Logins of one account waiting for consent. */
export const OAUTH_INTERACTIONS_PER_ACCOUNT_MAX = 50;
/** Logins of one person, so that nobody pushes out other people's, and for how many people they are counted. */
export const OAUTH_INTERACTIONS_PER_PERSON_MAX = 10;
export const OAUTH_PEOPLE_COUNTED_MAX = 10_000;
/** Clients of all accounts that registered themselves, and how long one without a connection is kept. */
export const OAUTH_CLIENTS_MAX = 1_000;
export const OAUTH_UNUSED_CLIENT_MS = DAY_MS;
export const OAUTH_CLIENTS_PER_ACCOUNT_MAX = 20;
/** Client assertions remembered, so that each is used once, and how long one may be valid. */
export const OAUTH_ASSERTIONS_MAX = 1_000;
export const OAUTH_ASSERTION_MS_MAX = HOUR_MS;
export const OAUTH_REGISTRATIONS_PER_CLIENT_MAX = 10;
/** Requests for tokens of one network address in `LOGIN_WINDOW_MS`. */
export const OAUTH_TOKEN_REQUESTS_PER_CLIENT_MAX = 600;
/** Metadata documents of clients: how they are read, and how long they are kept. */
export const OAUTH_DOCUMENT_MS_MAX = 5 * SECOND_MS;
export const OAUTH_DOCUMENT_CHARS_MAX = 16_384;
export const OAUTH_REDIRECTS_MAX = 20;
export const OAUTH_DOCUMENT_FRESH_MS = 10 * MINUTE_MS;
export const OAUTH_FAILED_DOCUMENT_MS = 30 * SECOND_MS;
export const OAUTH_DOCUMENT_KEPT_MS = DAY_MS;
export const OAUTH_DOCUMENTS_KEPT_MAX = 200;
export const OAUTH_DOCUMENTS_AT_ONCE_MAX = 8;
/** Reads of documents for one account at a time, which leaves the rest for other accounts. */
export const OAUTH_DOCUMENTS_PER_ACCOUNT_MAX = 2;
/** How long a person may take to consent, a code may be used, and a token works. */
export const OAUTH_CONSENT_MS_MAX = 10 * MINUTE_MS;
export const OAUTH_CODE_MS_MAX = MINUTE_MS;
export const OAUTH_ACCESS_TOKEN_MS_MAX = HOUR_MS;
/** A connection without an end needs consent again after this time. */
export const OAUTH_CONNECTION_MS_MAX = 365 * DAY_MS;

// The command line and the palette of the pages

export const LOGIN_FILE_BYTES_MAX = 4_096;
export const PALETTE_ACTIONS_MAX = 6;
export const PALETTE_TEXT_CHARS_MAX = 200;

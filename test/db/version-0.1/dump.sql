PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE migrations (name TEXT PRIMARY KEY, ran_at INTEGER NOT NULL);
INSERT INTO migrations VALUES('0001-start',1772625600000);
INSERT INTO migrations VALUES('0002-key-of-action',1772625600000);
INSERT INTO migrations VALUES('0003-broken-rows',1772625600000);
INSERT INTO migrations VALUES('0005-callback-hosts',1772625600000);
INSERT INTO migrations VALUES('0006-pauses-and-audit',1772625600000);
INSERT INTO migrations VALUES('0007-session-secrets',1772625600000);
INSERT INTO migrations VALUES('0008-key-scope',1772625600000);
INSERT INTO migrations VALUES('0009-rejections',1772625600000);
CREATE TABLE accounts (
  id TEXT PRIMARY KEY NOT NULL,
  sealed_root_secret TEXT NOT NULL,
  created_at INTEGER NOT NULL
, allowed_at INTEGER, allowed_by TEXT);
INSERT INTO accounts VALUES('acc_one','dec5661d.wmnaE6Zk/8PC7NPqIXm6IpQaIwdlVEWhl9Y/PN7pAmSjCZ+EVJPY2qDEpA4Z',1772625600000,NULL,NULL);
INSERT INTO accounts VALUES('acc_two','dec5661d.teygc2bjXLt6qv7eKh5mOBdiUl+MMLcmdbyNKf02+yMZmS4v/VwP9wADjOFb',1772625600000,NULL,NULL);
CREATE TABLE api_keys (
  id TEXT PRIMARY KEY NOT NULL,
  account_id TEXT NOT NULL,
  name TEXT NOT NULL,
  role TEXT NOT NULL,
  hold TEXT NOT NULL,
  hash TEXT NOT NULL UNIQUE,
  last4 TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  last_used_at INTEGER,
  revoked_at INTEGER
, scope TEXT NOT NULL DEFAULT 'own', replaces TEXT);
INSERT INTO api_keys VALUES('key_one','acc_one','first','owner','none','hash of key_one','abcd',1772625600000,1772625600007,NULL,'own',NULL);
INSERT INTO api_keys VALUES('key_agent','acc_one','agent','agent','writes','hash of key_agent','abcd',1772625600000,NULL,NULL,'account',NULL);
INSERT INTO api_keys VALUES('key_two','acc_one','first','agent','none','hash of key_two','abcd',1772625600000,NULL,NULL,'own','key_one');
INSERT INTO api_keys VALUES('key_old','acc_one','first','owner','none','hash of key_old','abcd',1772625600000,NULL,1772625600003,'own',NULL);
INSERT INTO api_keys VALUES('key_bob','acc_two','first','owner','none','hash of key_bob','abcd',1772625600000,NULL,NULL,'own',NULL);
CREATE TABLE people (
  id TEXT PRIMARY KEY NOT NULL,
  email TEXT NOT NULL,
  email_key TEXT NOT NULL UNIQUE,
  password_hash TEXT NOT NULL,
  created_at INTEGER NOT NULL
);
INSERT INTO people VALUES('per_ann','Ann@example.com','ann@example.com','hash of per_ann',1772625600000);
INSERT INTO people VALUES('per_bob','bob@example.com','bob@example.com','hash of per_bob',1772625600000);
CREATE TABLE members (
  account_id TEXT NOT NULL,
  person_id TEXT NOT NULL,
  joined_at INTEGER NOT NULL,
  PRIMARY KEY (account_id, person_id)
) WITHOUT ROWID;
INSERT INTO members VALUES('acc_one','per_ann',1772625600000);
INSERT INTO members VALUES('acc_two','per_bob',1772625600000);
CREATE TABLE sessions (
  hash TEXT PRIMARY KEY NOT NULL,
  person_id TEXT NOT NULL,
  account_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
, secret_hash TEXT) WITHOUT ROWID;
INSERT INTO sessions VALUES('hash of a session','per_ann','acc_one',1772625600000,1772629200000,'hash of a secret');
INSERT INTO sessions VALUES('req_36y1f7kw2yca6k5n8hf28y8c0f','per_bob','acc_two',1772625600000,1772629200000,NULL);
INSERT INTO sessions VALUES('req_3xnp5g2rtpfedcbm1xaha5paaj','per_ann','acc_one',1772625600000,1772629200000,'hash of a secret');
CREATE TABLE welcome_links (
  hash TEXT PRIMARY KEY NOT NULL,
  person_id TEXT,
  account_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO welcome_links VALUES('hash of a link','per_ann','acc_one',1772625600000,1772629200000);
CREATE TABLE signing_seeds (
  seq INTEGER PRIMARY KEY NOT NULL,
  id TEXT NOT NULL UNIQUE,
  account_id TEXT NOT NULL,
  origin TEXT NOT NULL,
  sealed_seed TEXT NOT NULL,
  rotated_at INTEGER NOT NULL
);
INSERT INTO signing_seeds VALUES(1,'seed_1','acc_one','','dec5661d.skLm/A1UTPGgR4KB42eWx97MiRoBps43KVl+UQg8G33vYQkIkB+HN6/mU5g=',1772625600001);
INSERT INTO signing_seeds VALUES(2,'seed_2','acc_one','calls','dec5661d.xOo8GTIDfoP2iHy0ykNHlMybeIY48qcMP/QvxC7UFqb0cNu/0BTTpCeFMqQ=',1772625600002);
INSERT INTO signing_seeds VALUES(3,'seed_3','acc_one','https://hooks.example.com','dec5661d.J0SAzDJfLFSPvQgQGhHobNcIvb5pEGZanTZ/uMf7+tbrEINmKTxwoew0NlI=',1772625600003);
INSERT INTO signing_seeds VALUES(5,'seed_5','acc_one','callbacks https://hooks.example.com','dec5661d.iOI6PxTCWLmSp37WLWo/YthN1nxcxf3YKp1cdkbCN91vziIzxGzCCDdE4Hs=',1772625600005);
INSERT INTO signing_seeds VALUES(6,'seed_6','acc_one','callbacks https://hooks.example.com','dec5661d.Zn1PB5iTflHJRHPvW+waut/u5XYOFTvxcP7fJ86aqmoMKhD8P1ZaZrHgHCY=',1772625600006);
CREATE TABLE actions (
  id TEXT PRIMARY KEY NOT NULL,
  account_id TEXT NOT NULL,
  revision INTEGER NOT NULL,
  status TEXT NOT NULL,
  run INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  retries INTEGER NOT NULL,
  url TEXT NOT NULL,
  hostname TEXT NOT NULL,
  host TEXT NOT NULL,
  method TEXT NOT NULL,
  dedupe TEXT,
  idempotency_key TEXT,
  on_unknown TEXT NOT NULL,
  approve INTEGER NOT NULL,
  callback TEXT,
  notify_email TEXT,
  created_at INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  due_at INTEGER,

  scheduled_at INTEGER NOT NULL,
  lease_until INTEGER,
  started_at INTEGER,
  finished_at INTEGER,
  approved_at INTEGER,
  approved_by TEXT,
  approved_digest TEXT,
  last_error TEXT,
  error_source TEXT,
  response_code INTEGER,
  response_truncated INTEGER,
  duration_ms INTEGER,

  sealed_headers TEXT,
  body TEXT,
  response_body TEXT, key_id TEXT NOT NULL DEFAULT '', key_role TEXT NOT NULL DEFAULT 'owner', key_hold TEXT NOT NULL DEFAULT 'none',

  CHECK (status IN ('pending', 'active', 'awaiting_approval', 'completed', 'failed', 'cancelled')),
  CHECK (attempts BETWEEN 0 AND retries AND revision > 0 AND run > 0),
  CHECK (status NOT IN ('pending', 'active') OR approve = 0 OR approved_at IS NOT NULL),
  CHECK (status <> 'pending' OR (due_at IS NOT NULL AND attempts < retries)),
  CHECK (status <> 'active' OR (lease_until IS NOT NULL AND attempts > 0))
);
INSERT INTO actions VALUES('act_01kjwbg7g0e58btr8y9s5trzdw','acc_one',1,'pending',1,0,3,'https://api.example.com/orders','api.example.com','api.example.com','POST',NULL,'of pending','retry',0,'https://hooks.example.com/h?a=1','ann@example.com',1772625600000,'key:test',1772625600000,1772625600000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'dec5661d.r5aiWSkFsgK0q3UCD+WWY3UlT1H3K/WAMNs4Yoi06L7R5CnlPw+8l5FZ91G5i40dJpWeSILmcAyNqjjvKAXvUNrZuKVkWFMzrrBbSA==','{"order":7}',NULL,'key_one','owner','none');
INSERT INTO actions VALUES('act_01kjwbg7g0e58tnbye2t1xa6vw','acc_one',1,'pending',1,0,3,'https://other.example:8443/x','other.example','other.example:8443','PUT',NULL,NULL,'retry',0,NULL,NULL,1772625600000,'key:agent',1772625600000,1772625600000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'{"order":7}',NULL,'key_agent','agent','writes');
INSERT INTO actions VALUES('act_01kjwbg7g0e599tb4efammhg92','acc_one',2,'active',1,1,3,'https://api.example.com/orders','api.example.com','api.example.com','POST',NULL,'of active','retry',0,'https://hooks.example.com/h?a=1','ann@example.com',1772625600000,'key:test',NULL,1772625600000,1772625645000,1772625600000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'dec5661d.GW+34Ux3ryR4XYhqQYJzPbn0iy5o+9lkb0ogVmIEM13DgRjJ6T2Hg0PdMvOOUPmpYytMDjTTUP+RzPNyFpWlErU/hWhUmTuSjTGI4Q==','{"order":7}',NULL,'key_one','owner','none');
INSERT INTO actions VALUES('act_01kjwbg7g0e59skvaz1gm7v87e','acc_one',2,'active',1,1,3,'https://other.example:8443/x','other.example','other.example:8443','PUT',NULL,NULL,'retry',0,NULL,NULL,1772625600000,'key:agent',NULL,1772625600000,1772625645000,1772625600000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'{"order":7}',NULL,'key_agent','agent','writes');
INSERT INTO actions VALUES('act_01kjwbg7g0e5aayfzrtaktt96z','acc_one',1,'awaiting_approval',1,0,3,'https://api.example.com/orders','api.example.com','api.example.com','POST',NULL,'of awaiting_approval','retry',1,'https://hooks.example.com/h?a=1','ann@example.com',1772625600000,'key:test',NULL,1772625600000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'dec5661d.11CL4XGD2C5BMklIZiF9gVHmlO2kqMzgHIqbrPF/XS6YLdTLpCKrujtGb0r2Zg2XOjLpEX4rzO55y4J65+tZSgq7a+p/F7NBlTbezg==','{"order":7}',NULL,'key_one','owner','none');
INSERT INTO actions VALUES('act_01kjwbg7g0e5bv1nzb7qw8sh9v','acc_one',1,'awaiting_approval',1,0,3,'https://other.example:8443/x','other.example','other.example:8443','PUT',NULL,NULL,'retry',1,NULL,NULL,1772625600000,'key:agent',NULL,1772625600000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'{"order":7}',NULL,'key_agent','agent','writes');
INSERT INTO actions VALUES('act_01kjwbg7g0e5c936ksrcc9wer7','acc_one',3,'completed',1,1,3,'https://api.example.com/orders','api.example.com','api.example.com','POST',NULL,'of completed','retry',0,'https://hooks.example.com/h?a=1','ann@example.com',1772625600000,'key:test',NULL,1772625600000,NULL,1772625600000,1772625600000,NULL,NULL,NULL,NULL,NULL,200,0,10,'dec5661d.OJMylIXLf5yVRpPW/UhDoE8aG5TaPYqjk6Vox15Ft7h/u1KfLHwPmBNqSDZuDkHBmoyZzW08nhoedCDBqBvwI0PSYx7kQsKCW5emBg==','{"order":7}','{"ok":true}','key_one','owner','none');
INSERT INTO actions VALUES('act_01kjwbg7g0e5d97arqp95tarmz','acc_one',3,'completed',1,1,3,'https://other.example:8443/x','other.example','other.example:8443','PUT',NULL,NULL,'retry',0,NULL,NULL,1772625600000,'key:agent',NULL,1772625600000,NULL,1772625600000,1772625600000,NULL,NULL,NULL,NULL,NULL,200,0,10,NULL,'{"order":7}','{"ok":true}','key_agent','agent','writes');
INSERT INTO actions VALUES('act_01kjwbg7g0e5dvt8mp23mvfbsy','acc_one',3,'failed',1,1,1,'https://api.example.com/orders','api.example.com','api.example.com','POST',NULL,'of failed','retry',0,'https://hooks.example.com/h?a=1','ann@example.com',1772625600000,'key:test',NULL,1772625600000,NULL,1772625600000,1772625600000,NULL,NULL,NULL,'The target answered with status 500.','target',500,0,10,'dec5661d.tmKrjHuSrqz4VBpfs3t6ZGotPecZYCqnRus6WCHjIaQn9V6rUSp6rRb74jrbJ3Y+UxQf/lYXhtLOwbHQsK+Gg8D0pye2Za/0B75yWg==','{"order":7}',NULL,'key_one','owner','none');
INSERT INTO actions VALUES('act_01kjwbg7g0e5erxw98aqmqzq33','acc_one',3,'failed',1,1,1,'https://other.example:8443/x','other.example','other.example:8443','PUT',NULL,NULL,'retry',0,NULL,NULL,1772625600000,'key:agent',NULL,1772625600000,NULL,1772625600000,1772625600000,NULL,NULL,NULL,'The target answered with status 500.','target',500,0,10,NULL,'{"order":7}',NULL,'key_agent','agent','writes');
INSERT INTO actions VALUES('act_01kjwbg7g0e5fagyrpge8rkmt8','acc_one',2,'cancelled',1,0,3,'https://api.example.com/orders','api.example.com','api.example.com','POST',NULL,'of cancelled','retry',0,'https://hooks.example.com/h?a=1','ann@example.com',1772625600000,'key:test',NULL,1772625600000,NULL,NULL,1772625600000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'dec5661d.iM58WoyEhFJ1d9WQ9/u4XTaA16rtZmmBaEuUjKVdG+3ilVAwSEEfekT2B/VuQeTHc9cJT0wBSGGtoLGYNu/EeA/Vss76gYRB3S80OA==','{"order":7}',NULL,'key_one','owner','none');
INSERT INTO actions VALUES('act_01kjwbg7g0e5gba2hj0nfkdccb','acc_one',2,'cancelled',1,0,3,'https://other.example:8443/x','other.example','other.example:8443','PUT',NULL,NULL,'retry',0,NULL,NULL,1772625600000,'key:agent',NULL,1772625600000,NULL,NULL,1772625600000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'{"order":7}',NULL,'key_agent','agent','writes');
INSERT INTO actions VALUES('act_01kjwbg7g0e5gr1a5cxp4bpv8p','acc_one',1,'pending',1,0,3,'https://api.example.com/orders','api.example.com','api.example.com','POST','order 7','key 7','retry',0,NULL,NULL,1772625600000,'key:test',1772625600000,1772625600000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'{"n":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx","big":12345678901234567890}',NULL,'key_one','owner','none');
INSERT INTO actions VALUES('act_01kjwbg7g0e5hb7m1v08c05s9k','acc_one',3,'pending',1,1,3,'https://api.example.com/orders','api.example.com','api.example.com','POST',NULL,NULL,'retry',0,'https://hooks.example.com/h?a=1','ann@example.com',1772625600000,'key:test',1772625602000,1772625600000,NULL,1772625600000,NULL,NULL,NULL,NULL,'The target answered with status 503.','target',503,0,10,'dec5661d.yEljtcVGTjt20d13lmhACCv6D1qRLpmrhwX5RaYVF2oMmg+Lf5JtBI+8V7HtmMCIEqSM2kguXK4pSXh2KtYz3sZhohMv6PHnNmShdg==','{"order":7}','{"busy":true}','key_one','owner','none');
INSERT INTO actions VALUES('act_01kjwbg7g0e5htnav60rbdzd4h','acc_one',4,'completed',1,1,3,'https://api.example.com/orders','api.example.com','api.example.com','POST',NULL,NULL,'retry',1,'https://hooks.example.com/h?a=1','ann@example.com',1772625600000,'key:test',NULL,1772625600000,NULL,1772625600000,1772625600000,1772625600001,'key:boss','digest of what was approved',NULL,NULL,200,0,10,'dec5661d.rz9PmTzJk10YGsHB+QDCrfCnGz64ZMGX90vl/e6wALKZDSP6BlpviI7Puaa9guACH2XoANz2kwNxDhOzLBEXK1jwGFDgmC8cA66q5A==','{"order":7}','{"ok":true}','key_one','owner','none');
INSERT INTO actions VALUES('act_01kjwbg7g0e5mana873y0zj2z3','acc_one',5,'awaiting_approval',2,0,1,'https://api.example.com/orders','api.example.com','api.example.com','POST',NULL,NULL,'retry',1,NULL,NULL,1772625600000,'key:test',NULL,1772625600000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'{"order":7}',NULL,'key_one','owner','none');
INSERT INTO actions VALUES('act_01kjwbg7g0e5mrj4vg42arm0m0','acc_one',4,'pending',2,0,1,'https://api.example.com/orders','api.example.com','api.example.com','POST','again',NULL,'retry',0,NULL,NULL,1772625600000,'key:test',1772625600003,1772625600000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'{"order":7}',NULL,'key_one','owner','none');
INSERT INTO actions VALUES('act_01kjwbg7g0e5n93yaasmhtkxsa','acc_one',2,'cancelled',1,0,3,'https://api.example.com/orders','api.example.com','api.example.com','POST',NULL,NULL,'retry',1,NULL,NULL,1772625600000,'key:test',NULL,1772625600000,NULL,NULL,1772625600001,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'{"order":7}',NULL,'key_one','owner','none');
INSERT INTO actions VALUES('act_01kjwbg7g0e5nvh2qkcny65b5k','acc_one',1,'awaiting_approval',1,0,3,'https://api.example.com/orders','api.example.com','api.example.com','BREW',NULL,NULL,'retry',1,NULL,NULL,1772625600000,'key:test',NULL,1772625600000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'{"order":7}',NULL,'key_one','owner','none');
INSERT INTO actions VALUES('act_01kjwbg7g0e5pb65y09htvzkfe','acc_one',2,'active',1,1,3,'https://claimed.example/','claimed.example','claimed.example','POST',NULL,NULL,'retry',0,NULL,NULL,1772625600000,'key:test',NULL,1772625600000,1772625645000,1772625600000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'{"order":7}',NULL,'key_one','owner','none');
INSERT INTO actions VALUES('act_01kjwbg7g0e5prk8q3k7ykhnz9','acc_two',1,'pending',1,0,3,'https://api.example.com/orders','api.example.com','api.example.com','POST',NULL,NULL,'retry',0,NULL,NULL,1772625600000,'key:test',1772625600000,1772625600000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'{"order":7}',NULL,'key_bob','owner','none');
CREATE TABLE action_keys (
  account_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  key TEXT NOT NULL,
  action_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (account_id, kind, key)
) WITHOUT ROWID;
INSERT INTO action_keys VALUES('acc_one','dedupe','again','act_01kjwbg7g0e5mrj4vg42arm0m0',1772625600000);
INSERT INTO action_keys VALUES('acc_one','dedupe','order 7','act_01kjwbg7g0e5gr1a5cxp4bpv8p',1772625600000);
INSERT INTO action_keys VALUES('acc_one','idempotency','key 7','act_01kjwbg7g0e5gr1a5cxp4bpv8p',1772625600000);
INSERT INTO action_keys VALUES('acc_one','idempotency','of active','act_01kjwbg7g0e599tb4efammhg92',1772625600000);
INSERT INTO action_keys VALUES('acc_one','idempotency','of awaiting_approval','act_01kjwbg7g0e5aayfzrtaktt96z',1772625600000);
INSERT INTO action_keys VALUES('acc_one','idempotency','of cancelled','act_01kjwbg7g0e5fagyrpge8rkmt8',1772625600000);
INSERT INTO action_keys VALUES('acc_one','idempotency','of completed','act_01kjwbg7g0e5c936ksrcc9wer7',1772625600000);
INSERT INTO action_keys VALUES('acc_one','idempotency','of failed','act_01kjwbg7g0e5dvt8mp23mvfbsy',1772625600000);
INSERT INTO action_keys VALUES('acc_one','idempotency','of pending','act_01kjwbg7g0e58btr8y9s5trzdw',1772625600000);
CREATE TABLE timeline (
  seq INTEGER PRIMARY KEY NOT NULL,
  action_id TEXT NOT NULL,
  account_id TEXT NOT NULL,
  at INTEGER NOT NULL,
  run INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  type TEXT NOT NULL,

  subject TEXT NOT NULL DEFAULT '',
  status TEXT NOT NULL,
  detail TEXT NOT NULL
);
INSERT INTO timeline VALUES(1,'act_01kjwbg7g0e58btr8y9s5trzdw','acc_one',1772625600000,1,1,'created','','pending','{"actor":"key:test"}');
INSERT INTO timeline VALUES(2,'act_01kjwbg7g0e58tnbye2t1xa6vw','acc_one',1772625600000,1,1,'created','','pending','{"actor":"key:agent"}');
INSERT INTO timeline VALUES(3,'act_01kjwbg7g0e599tb4efammhg92','acc_one',1772625600000,1,1,'created','','pending','{"actor":"key:test"}');
INSERT INTO timeline VALUES(4,'act_01kjwbg7g0e599tb4efammhg92','acc_one',1772625600000,1,2,'started','','active','{}');
INSERT INTO timeline VALUES(5,'act_01kjwbg7g0e59skvaz1gm7v87e','acc_one',1772625600000,1,1,'created','','pending','{"actor":"key:agent"}');
INSERT INTO timeline VALUES(6,'act_01kjwbg7g0e59skvaz1gm7v87e','acc_one',1772625600000,1,2,'started','','active','{}');
INSERT INTO timeline VALUES(7,'act_01kjwbg7g0e5aayfzrtaktt96z','acc_one',1772625600000,1,1,'created','','awaiting_approval','{"actor":"key:test"}');
INSERT INTO timeline VALUES(8,'act_01kjwbg7g0e5aayfzrtaktt96z','acc_one',1772625600000,1,1,'held','','awaiting_approval','{}');
INSERT INTO timeline VALUES(9,'act_01kjwbg7g0e5bv1nzb7qw8sh9v','acc_one',1772625600000,1,1,'created','','awaiting_approval','{"actor":"key:agent"}');
INSERT INTO timeline VALUES(10,'act_01kjwbg7g0e5bv1nzb7qw8sh9v','acc_one',1772625600000,1,1,'held','','awaiting_approval','{}');
INSERT INTO timeline VALUES(11,'act_01kjwbg7g0e5c936ksrcc9wer7','acc_one',1772625600000,1,1,'created','','pending','{"actor":"key:test"}');
INSERT INTO timeline VALUES(12,'act_01kjwbg7g0e5c936ksrcc9wer7','acc_one',1772625600000,1,2,'started','','active','{}');
INSERT INTO timeline VALUES(13,'act_01kjwbg7g0e5c936ksrcc9wer7','acc_one',1772625600000,1,3,'attempt','','completed','{"attempt":1,"outcome":"answered","response_code":200,"error":null,"duration_ms":10,"next_retry_at":null,"location":null}');
INSERT INTO timeline VALUES(14,'act_01kjwbg7g0e5c936ksrcc9wer7','acc_one',1772625600000,1,3,'completed','','completed','{}');
INSERT INTO timeline VALUES(15,'act_01kjwbg7g0e5d97arqp95tarmz','acc_one',1772625600000,1,1,'created','','pending','{"actor":"key:agent"}');
INSERT INTO timeline VALUES(16,'act_01kjwbg7g0e5d97arqp95tarmz','acc_one',1772625600000,1,2,'started','','active','{}');
INSERT INTO timeline VALUES(17,'act_01kjwbg7g0e5d97arqp95tarmz','acc_one',1772625600000,1,3,'attempt','','completed','{"attempt":1,"outcome":"answered","response_code":200,"error":null,"duration_ms":10,"next_retry_at":null,"location":null}');
INSERT INTO timeline VALUES(18,'act_01kjwbg7g0e5d97arqp95tarmz','acc_one',1772625600000,1,3,'completed','','completed','{}');
INSERT INTO timeline VALUES(19,'act_01kjwbg7g0e5dvt8mp23mvfbsy','acc_one',1772625600000,1,1,'created','','pending','{"actor":"key:test"}');
INSERT INTO timeline VALUES(20,'act_01kjwbg7g0e5dvt8mp23mvfbsy','acc_one',1772625600000,1,2,'started','','active','{}');
INSERT INTO timeline VALUES(21,'act_01kjwbg7g0e5dvt8mp23mvfbsy','acc_one',1772625600000,1,3,'attempt','','failed','{"attempt":1,"outcome":"answered","response_code":500,"error":"The target answered with status 500.","duration_ms":10,"next_retry_at":null,"location":null}');
INSERT INTO timeline VALUES(22,'act_01kjwbg7g0e5dvt8mp23mvfbsy','acc_one',1772625600000,1,3,'failed','','failed','{}');
INSERT INTO timeline VALUES(23,'act_01kjwbg7g0e5erxw98aqmqzq33','acc_one',1772625600000,1,1,'created','','pending','{"actor":"key:agent"}');
INSERT INTO timeline VALUES(24,'act_01kjwbg7g0e5erxw98aqmqzq33','acc_one',1772625600000,1,2,'started','','active','{}');
INSERT INTO timeline VALUES(25,'act_01kjwbg7g0e5erxw98aqmqzq33','acc_one',1772625600000,1,3,'attempt','','failed','{"attempt":1,"outcome":"answered","response_code":500,"error":"The target answered with status 500.","duration_ms":10,"next_retry_at":null,"location":null}');
INSERT INTO timeline VALUES(26,'act_01kjwbg7g0e5erxw98aqmqzq33','acc_one',1772625600000,1,3,'failed','','failed','{}');
INSERT INTO timeline VALUES(27,'act_01kjwbg7g0e5fagyrpge8rkmt8','acc_one',1772625600000,1,1,'created','','pending','{"actor":"key:test"}');
INSERT INTO timeline VALUES(28,'act_01kjwbg7g0e5fagyrpge8rkmt8','acc_one',1772625600000,1,2,'cancelled','','cancelled','{"actor":"key:boss","reason":null}');
INSERT INTO timeline VALUES(29,'act_01kjwbg7g0e5gba2hj0nfkdccb','acc_one',1772625600000,1,1,'created','','pending','{"actor":"key:agent"}');
INSERT INTO timeline VALUES(30,'act_01kjwbg7g0e5gba2hj0nfkdccb','acc_one',1772625600000,1,2,'cancelled','','cancelled','{"actor":"key:boss","reason":null}');
INSERT INTO timeline VALUES(31,'act_01kjwbg7g0e5gr1a5cxp4bpv8p','acc_one',1772625600000,1,1,'created','','pending','{"actor":"key:test"}');
INSERT INTO timeline VALUES(32,'act_01kjwbg7g0e5hb7m1v08c05s9k','acc_one',1772625600000,1,1,'created','','pending','{"actor":"key:test"}');
INSERT INTO timeline VALUES(33,'act_01kjwbg7g0e5hb7m1v08c05s9k','acc_one',1772625600000,1,2,'started','','active','{}');
INSERT INTO timeline VALUES(34,'act_01kjwbg7g0e5hb7m1v08c05s9k','acc_one',1772625600000,1,3,'attempt','','pending','{"attempt":1,"outcome":"answered","response_code":503,"error":"The target answered with status 503.","duration_ms":10,"next_retry_at":"2026-03-04T12:00:02.000Z","location":null}');
INSERT INTO timeline VALUES(35,'act_01kjwbg7g0e5htnav60rbdzd4h','acc_one',1772625600000,1,1,'created','','awaiting_approval','{"actor":"key:test"}');
INSERT INTO timeline VALUES(36,'act_01kjwbg7g0e5htnav60rbdzd4h','acc_one',1772625600000,1,1,'held','','awaiting_approval','{}');
INSERT INTO timeline VALUES(37,'act_01kjwbg7g0e5htnav60rbdzd4h','acc_one',1772625600000,1,2,'approved','','pending','{"actor":"key:boss","reason":"fine"}');
INSERT INTO timeline VALUES(38,'act_01kjwbg7g0e5htnav60rbdzd4h','acc_one',1772625600000,1,3,'started','','active','{}');
INSERT INTO timeline VALUES(39,'act_01kjwbg7g0e5htnav60rbdzd4h','acc_one',1772625600000,1,4,'attempt','','completed','{"attempt":1,"outcome":"answered","response_code":200,"error":null,"duration_ms":10,"next_retry_at":null,"location":null}');
INSERT INTO timeline VALUES(40,'act_01kjwbg7g0e5htnav60rbdzd4h','acc_one',1772625600000,1,4,'completed','','completed','{}');
INSERT INTO timeline VALUES(41,'act_01kjwbg7g0e5mana873y0zj2z3','acc_one',1772625600000,1,1,'created','','awaiting_approval','{"actor":"key:test"}');
INSERT INTO timeline VALUES(42,'act_01kjwbg7g0e5mana873y0zj2z3','acc_one',1772625600000,1,1,'held','','awaiting_approval','{}');
INSERT INTO timeline VALUES(43,'act_01kjwbg7g0e5mana873y0zj2z3','acc_one',1772625600000,1,2,'approved','','pending','{"actor":"key:boss","reason":null}');
INSERT INTO timeline VALUES(44,'act_01kjwbg7g0e5mana873y0zj2z3','acc_one',1772625600000,1,3,'started','','active','{}');
INSERT INTO timeline VALUES(45,'act_01kjwbg7g0e5mana873y0zj2z3','acc_one',1772625600000,1,4,'attempt','','failed','{"attempt":1,"outcome":"answered","response_code":500,"error":"The target answered with status 500.","duration_ms":10,"next_retry_at":null,"location":null}');
INSERT INTO timeline VALUES(46,'act_01kjwbg7g0e5mana873y0zj2z3','acc_one',1772625600000,1,4,'failed','','failed','{}');
INSERT INTO timeline VALUES(47,'act_01kjwbg7g0e5mana873y0zj2z3','acc_one',1772625600000,2,5,'retried','','awaiting_approval','{"actor":"key:boss","reason":"once more"}');
INSERT INTO timeline VALUES(48,'act_01kjwbg7g0e5mana873y0zj2z3','acc_one',1772625600000,2,5,'held','','awaiting_approval','{}');
INSERT INTO timeline VALUES(49,'act_01kjwbg7g0e5mrj4vg42arm0m0','acc_one',1772625600000,1,1,'created','','pending','{"actor":"key:test"}');
INSERT INTO timeline VALUES(50,'act_01kjwbg7g0e5mrj4vg42arm0m0','acc_one',1772625600000,1,2,'started','','active','{}');
INSERT INTO timeline VALUES(51,'act_01kjwbg7g0e5mrj4vg42arm0m0','acc_one',1772625600000,1,3,'attempt','','failed','{"attempt":1,"outcome":"answered","response_code":404,"error":"The target answered with status 404.","duration_ms":10,"next_retry_at":null,"location":null}');
INSERT INTO timeline VALUES(52,'act_01kjwbg7g0e5mrj4vg42arm0m0','acc_one',1772625600000,1,3,'failed','','failed','{}');
INSERT INTO timeline VALUES(53,'act_01kjwbg7g0e5mrj4vg42arm0m0','acc_one',1772625600000,2,4,'retried','','pending','{"actor":"key:boss","reason":null}');
INSERT INTO timeline VALUES(54,'act_01kjwbg7g0e5n93yaasmhtkxsa','acc_one',1772625600000,1,1,'created','','awaiting_approval','{"actor":"key:test"}');
INSERT INTO timeline VALUES(55,'act_01kjwbg7g0e5n93yaasmhtkxsa','acc_one',1772625600000,1,1,'held','','awaiting_approval','{}');
INSERT INTO timeline VALUES(56,'act_01kjwbg7g0e5n93yaasmhtkxsa','acc_one',1772625600000,1,2,'rejected','','cancelled','{"actor":"key:boss","reason":"no"}');
INSERT INTO timeline VALUES(57,'act_01kjwbg7g0e5nvh2qkcny65b5k','acc_one',1772625600000,1,1,'created','','awaiting_approval','{"actor":"key:test"}');
INSERT INTO timeline VALUES(58,'act_01kjwbg7g0e5nvh2qkcny65b5k','acc_one',1772625600000,1,1,'held','','awaiting_approval','{}');
INSERT INTO timeline VALUES(59,'act_01kjwbg7g0e5pb65y09htvzkfe','acc_one',1772625600000,1,1,'created','','pending','{"actor":"key:test"}');
INSERT INTO timeline VALUES(60,'act_01kjwbg7g0e5pb65y09htvzkfe','acc_one',1772625600000,1,2,'started','','active','{}');
INSERT INTO timeline VALUES(61,'act_01kjwbg7g0e5prk8q3k7ykhnz9','acc_two',1772625600000,1,1,'created','','pending','{"actor":"key:test"}');
INSERT INTO timeline VALUES(62,'act_01kjwbg7g0e5aayfzrtaktt96z','acc_one',1772625600000,1,1,'callback','01kjwbg7g0e5argprfnrph6j2t 1 1772625645000','awaiting_approval','{"event":"action.awaiting_approval","delivered":true,"attempts":1,"error":null,"next_retry_at":null}');
INSERT INTO timeline VALUES(63,'act_01kjwbg7g0e5c936ksrcc9wer7','acc_one',1772625600000,1,3,'callback','01kjwbg7g0e5cvw76z8sfkkkd8 1 1772625645000','completed','{"event":"action.completed","delivered":false,"attempts":1,"error":"HTTP 500","next_retry_at":"2026-03-04T12:00:05.000Z"}');
INSERT INTO timeline VALUES(64,'act_01kjwbg7g0e5aayfzrtaktt96z','acc_one',1772625600000,1,1,'mail','01kjwbg7g0e5bby2hj4kdjq2e6 1 1772625645000','awaiting_approval','{"event":"approval","delivered":true,"attempts":1,"error":null,"next_retry_at":null}');
CREATE TABLE outbox (
  id TEXT PRIMARY KEY NOT NULL,
  action_id TEXT NOT NULL,
  account_id TEXT NOT NULL,
  run INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  kind TEXT NOT NULL,
  event TEXT NOT NULL,
  target TEXT NOT NULL,
  host TEXT NOT NULL,
  payload TEXT,
  status TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  due_at INTEGER,
  scheduled_at INTEGER NOT NULL,
  lease_until INTEGER,
  created_at INTEGER NOT NULL,

  sent_at INTEGER,
  last_error TEXT, key_id TEXT NOT NULL DEFAULT '',
  CHECK (status IN ('pending', 'active', 'delivered', 'given_up', 'dropped') AND attempts >= 0),
  CHECK (status <> 'pending' OR due_at IS NOT NULL),
  CHECK (status <> 'active' OR (lease_until IS NOT NULL AND attempts > 0))
);
INSERT INTO outbox VALUES('01kjwbg7g0e5argprfnrph6j2t','act_01kjwbg7g0e5aayfzrtaktt96z','acc_one',1,1,'callback','action.awaiting_approval','https://hooks.example.com/h?a=1','hooks.example.com',NULL,'delivered',1,NULL,1772625600000,NULL,1772625600000,NULL,NULL,'key_one');
INSERT INTO outbox VALUES('01kjwbg7g0e5bby2hj4kdjq2e6','act_01kjwbg7g0e5aayfzrtaktt96z','acc_one',1,1,'mail','approval','ann@example.com','ann@example.com',NULL,'delivered',1,NULL,1772625600000,NULL,1772625600000,1772625600000,NULL,'key_one');
INSERT INTO outbox VALUES('01kjwbg7g0e5cvw76z8sfkkkd8','act_01kjwbg7g0e5c936ksrcc9wer7','acc_one',1,3,'callback','action.completed','https://hooks.example.com/h?a=1','hooks.example.com','{"type":"action.completed","timestamp":"2026-03-04T12:00:00.000Z","data":{"id":"act_01kjwbg7g0e5c936ksrcc9wer7","status":"completed","url":"https://api.example.com/orders","method":"POST","body":{"order":7},"headers":{"Authorization":"••••","X-N":"••••"},"dedupe":null,"run":1,"attempts":1,"retries":3,"created_at":"2026-03-04T12:00:00.000Z","created_by":{"id":"key_one","name":"test"},"started_at":"2026-03-04T12:00:00.000Z","finished_at":"2026-03-04T12:00:00.000Z","next_retry_at":null,"last_error":null,"response_code":200,"response_body":{"ok":true},"duration_ms":10,"approve":false,"approved_at":null,"approved_by":null,"callback":"https://hooks.example.com/h?a=1","idempotency_key":"of completed","actions":[],"receipt_url":"/r/act_01kjwbg7g0e5c936ksrcc9wer7"}}','pending',1,1772625605000,1772625600000,NULL,1772625600000,NULL,'HTTP 500','key_one');
INSERT INTO outbox VALUES('01kjwbg7g0e5e9f4w2k1a1xtd8','act_01kjwbg7g0e5dvt8mp23mvfbsy','acc_one',1,3,'callback','action.failed','https://hooks.example.com/h?a=1','hooks.example.com','{"type":"action.failed","timestamp":"2026-03-04T12:00:00.000Z","data":{"id":"act_01kjwbg7g0e5dvt8mp23mvfbsy","status":"failed","url":"https://api.example.com/orders","method":"POST","body":{"order":7},"headers":{"Authorization":"••••","X-N":"••••"},"dedupe":null,"run":1,"attempts":1,"retries":1,"created_at":"2026-03-04T12:00:00.000Z","created_by":{"id":"key_one","name":"test"},"started_at":"2026-03-04T12:00:00.000Z","finished_at":"2026-03-04T12:00:00.000Z","next_retry_at":null,"last_error":"The target answered with status 500.","response_code":500,"response_body":null,"duration_ms":10,"approve":false,"approved_at":null,"approved_by":null,"callback":"https://hooks.example.com/h?a=1","idempotency_key":"of failed","actions":["retry"],"error":{"source":"target","message":"The target answered with status 500.","response_code":500,"response_body":null},"receipt_url":"/r/act_01kjwbg7g0e5dvt8mp23mvfbsy"}}','active',1,NULL,1772625600000,1772625645000,1772625600000,NULL,NULL,'key_one');
INSERT INTO outbox VALUES('01kjwbg7g0e5fvv273xr7t4ma8','act_01kjwbg7g0e5fagyrpge8rkmt8','acc_one',1,2,'callback','action.cancelled','https://hooks.example.com/h?a=1','hooks.example.com','{"type":"action.cancelled","timestamp":"2026-03-04T12:00:00.000Z","data":{"id":"act_01kjwbg7g0e5fagyrpge8rkmt8","status":"cancelled","url":"https://api.example.com/orders","method":"POST","body":{"order":7},"headers":{"Authorization":"••••","X-N":"••••"},"dedupe":null,"run":1,"attempts":0,"retries":3,"created_at":"2026-03-04T12:00:00.000Z","created_by":{"id":"key_one","name":"test"},"started_at":null,"finished_at":"2026-03-04T12:00:00.000Z","next_retry_at":null,"last_error":null,"response_code":null,"response_body":null,"duration_ms":null,"approve":false,"approved_at":null,"approved_by":null,"callback":"https://hooks.example.com/h?a=1","idempotency_key":"of cancelled","actions":["retry"],"receipt_url":"/r/act_01kjwbg7g0e5fagyrpge8rkmt8"}}','active',1,NULL,1772625600000,1772625645000,1772625600000,NULL,NULL,'key_one');
INSERT INTO outbox VALUES('01kjwbg7g0e5jam3rpwryv5qj8','act_01kjwbg7g0e5htnav60rbdzd4h','acc_one',1,1,'pigeon','action.awaiting_approval','https://hooks.example.com/h?a=1','hooks.example.com','{"type":"action.awaiting_approval","timestamp":"2026-03-04T12:00:00.000Z","data":{"id":"act_01kjwbg7g0e5htnav60rbdzd4h","status":"awaiting_approval","url":"https://api.example.com/orders","method":"POST","body":{"order":7},"headers":{"Authorization":"••••","X-N":"••••"},"dedupe":null,"run":1,"attempts":0,"retries":3,"created_at":"2026-03-04T12:00:00.000Z","created_by":{"id":"key_one","name":"test"},"started_at":null,"finished_at":null,"next_retry_at":null,"last_error":null,"response_code":null,"response_body":null,"duration_ms":null,"approve":true,"approved_at":null,"approved_by":null,"callback":"https://hooks.example.com/h?a=1","idempotency_key":null,"actions":["approve","cancel"],"receipt_url":"/r/act_01kjwbg7g0e5htnav60rbdzd4h"}}','pending',0,1772625600000,1772625600000,NULL,1772625600000,NULL,NULL,'key_one');
INSERT INTO outbox VALUES('01kjwbg7g0e5jvacsny4c9nay0','act_01kjwbg7g0e5htnav60rbdzd4h','acc_one',1,1,'mail','approval','ann@example.com','ann@example.com',NULL,'active',1,NULL,1772625600000,1772625645000,1772625600000,NULL,NULL,'key_one');
INSERT INTO outbox VALUES('01kjwbg7g0e5kakec3sfh9b9f1','act_01kjwbg7g0e5htnav60rbdzd4h','acc_one',1,2,'mail','decided','ann@example.com','ann@example.com',NULL,'dropped',0,NULL,1772625600000,NULL,1772625600000,NULL,NULL,'key_one');
INSERT INTO outbox VALUES('01kjwbg7g0e5ksan54w05g034v','act_01kjwbg7g0e5htnav60rbdzd4h','acc_one',1,4,'callback','action.completed','https://hooks.example.com/h?a=1','hooks.example.com','{"type":"action.completed","timestamp":"2026-03-04T12:00:00.000Z","data":{"id":"act_01kjwbg7g0e5htnav60rbdzd4h","status":"completed","url":"https://api.example.com/orders","method":"POST","body":{"order":7},"headers":{"Authorization":"••••","X-N":"••••"},"dedupe":null,"run":1,"attempts":1,"retries":3,"created_at":"2026-03-04T12:00:00.000Z","created_by":{"id":"key_one","name":"test"},"started_at":"2026-03-04T12:00:00.000Z","finished_at":"2026-03-04T12:00:00.000Z","next_retry_at":null,"last_error":null,"response_code":200,"response_body":{"ok":true},"duration_ms":10,"approve":true,"approved_at":"2026-03-04T12:00:00.001Z","approved_by":"key:boss","callback":"https://hooks.example.com/h?a=1","idempotency_key":null,"actions":[],"receipt_url":"/r/act_01kjwbg7g0e5htnav60rbdzd4h"}}','given_up',0,NULL,1772625600000,NULL,1772625600000,NULL,'HTTP 410','key_one');
CREATE TABLE approval_links (
  action_id TEXT NOT NULL,
  run INTEGER NOT NULL,
  decision TEXT NOT NULL,
  hash TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (action_id, run, decision)
) WITHOUT ROWID;
INSERT INTO approval_links VALUES('act_01kjwbg7g0e5aayfzrtaktt96z',1,'approve','h1',1772625601000);
INSERT INTO approval_links VALUES('act_01kjwbg7g0e5aayfzrtaktt96z',1,'reject','h2',1772625601000);
CREATE TABLE facts (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO facts VALUES('a fact','its value');
CREATE TABLE callback_hosts (
  account_id TEXT NOT NULL,
  host TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (account_id, host)
) WITHOUT ROWID;
INSERT INTO callback_hosts VALUES('acc_one','hooks.example.com',1772625600000);
CREATE TABLE callback_overlaps (
  account_id TEXT NOT NULL,
  origin TEXT NOT NULL,
  until INTEGER NOT NULL,
  PRIMARY KEY (account_id, origin)
) WITHOUT ROWID;
INSERT INTO callback_overlaps VALUES('acc_one','https://hooks.example.com',1772625600099);
CREATE TABLE pauses (
  id TEXT PRIMARY KEY NOT NULL,
  account_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  subject TEXT NOT NULL,
  reason TEXT,

  cancels INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  ended_at INTEGER,
  ended_by TEXT,
  CHECK (kind <> '' AND (kind = 'account') = (subject = ''))
);
INSERT INTO pauses VALUES('pau_3276554vaqcj691qhb2n1542h0','acc_one','key','key_old','left',0,1772625600000,'key:boss',NULL,NULL);
INSERT INTO pauses VALUES('pau_a1ee0d509143510844c1857db7503032','acc_two','sign_up','acc_two','not allowed yet',0,1772625600005,'system',NULL,NULL);
INSERT INTO pauses VALUES('pau_one','acc_one','account','','a fire',0,1772625600000,'key:boss',1772625600004,'key:boss');
INSERT INTO pauses VALUES('pau_two','acc_one','key','key_two',NULL,1,1772625600000,'key:boss',NULL,NULL);
CREATE TABLE audit (
  seq INTEGER PRIMARY KEY NOT NULL,
  at INTEGER NOT NULL,
  account_id TEXT NOT NULL,
  actor TEXT NOT NULL,
  kind TEXT NOT NULL,
  subject TEXT NOT NULL,
  client TEXT NOT NULL,
  detail TEXT NOT NULL
);
INSERT INTO audit VALUES(1,1772625600000,'acc_one','key:boss','key_created','key_one','192.0.2.7','{"via":"api"}');
INSERT INTO audit VALUES(2,1772625600000,'acc_one','key:boss','key_created','key_two','192.0.2.7','{"via":"api"}');
INSERT INTO audit VALUES(3,1772625600000,'acc_one','key:boss','key_revoked','key_old','192.0.2.7','{"via":"api"}');
INSERT INTO audit VALUES(4,1772625600000,'acc_one','key:boss','paused','key_old','192.0.2.7','{"via":"api"}');
INSERT INTO audit VALUES(5,1772625600000,'acc_one','user:per_ann','signed_up','pau_one','192.0.2.7','{"via":"api"}');
INSERT INTO audit VALUES(6,1772625600000,'acc_one','user:per_ann','signed_in','pau_one','192.0.2.7','{"via":"api"}');
INSERT INTO audit VALUES(7,1772625600000,'acc_one','key:boss','signing_secret_rotated','','192.0.2.7','{"via":"api"}');
INSERT INTO audit VALUES(8,1772625600000,'acc_one','key:boss','signing_secret_rotated','','192.0.2.7','{"via":"api"}');
INSERT INTO audit VALUES(9,1772625600000,'acc_one','key:boss','signing_secret_rotated','https://hooks.example.com','192.0.2.7','{"via":"api"}');
INSERT INTO audit VALUES(10,1772625600000,'acc_one','key:boss','signing_secret_rotated','https://hooks.example.com','192.0.2.7','{"via":"api"}');
INSERT INTO audit VALUES(11,1772625600000,'acc_one','key:boss','signing_secret_rotated','https://hooks.example.com','192.0.2.7','{"via":"api"}');
INSERT INTO audit VALUES(12,1772625600000,'acc_one','key:boss','signing_secret_rotated','https://hooks.example.com','192.0.2.7','{"via":"api"}');
INSERT INTO audit VALUES(13,1772625600000,'acc_one','key:boss','approved','act_01kjwbg7g0e5htnav60rbdzd4h','192.0.2.7','{"via":"api"}');
INSERT INTO audit VALUES(14,1772625600000,'acc_one','key:boss','rejected','act_01kjwbg7g0e5n93yaasmhtkxsa','192.0.2.7','{"via":"api"}');
INSERT INTO audit VALUES(15,1772625600000,'acc_one','key:boss','paused','pau_one','192.0.2.7','{"via":"api"}');
INSERT INTO audit VALUES(16,1772625600000,'acc_one','key:boss','resumed','pau_one','192.0.2.7','{"via":"api"}');
INSERT INTO audit VALUES(17,1772625600000,'acc_one','key:boss','paused','pau_two','192.0.2.7','{"via":"api"}');
CREATE TABLE rejections (
  seq INTEGER PRIMARY KEY NOT NULL,
  account_id TEXT NOT NULL,
  key_id TEXT NOT NULL,
  digest TEXT NOT NULL,
  kind TEXT NOT NULL,
  at INTEGER NOT NULL,
  action_id TEXT NOT NULL,
  run INTEGER NOT NULL,
  actor TEXT NOT NULL,
  reason TEXT
);
INSERT INTO rejections VALUES(1,'acc_one','key_one','digest of a request','rejected',1772625600000,'act_01kjwbg7g0e5n93yaasmhtkxsa',1,'key:boss','no');
INSERT INTO rejections VALUES(2,'acc_one','key_one','digest of a request','asked',1772625600000,'act_01kjwbg7g0e5nvh2qkcny65b5k',1,'key:test','because');
CREATE INDEX api_keys_by_account ON api_keys (account_id, revoked_at, created_at, id);
CREATE INDEX members_by_account ON members (account_id, joined_at, person_id);
CREATE INDEX members_by_person ON members (person_id, joined_at);
CREATE INDEX sessions_by_person ON sessions (person_id, created_at);
CREATE INDEX sessions_by_end ON sessions (expires_at);
CREATE INDEX welcome_links_by_account ON welcome_links (account_id, person_id);
CREATE INDEX welcome_links_by_end ON welcome_links (expires_at);
CREATE INDEX signing_seeds_by_origin ON signing_seeds (account_id, origin, seq);
CREATE INDEX actions_by_account ON actions (account_id, id);
CREATE INDEX actions_by_hostname ON actions (account_id, hostname, id);
CREATE INDEX actions_by_status ON actions (account_id, status, id) WHERE status <> 'completed' AND status <> 'active';
CREATE INDEX actions_by_dedupe ON actions (account_id, dedupe, id) WHERE dedupe IS NOT NULL;
CREATE INDEX actions_active ON actions (account_id, id, lease_until) WHERE status = 'active';
CREATE INDEX actions_held ON actions (id) WHERE status = 'awaiting_approval';
CREATE INDEX action_keys_by_age ON action_keys (created_at);
CREATE UNIQUE INDEX timeline_once ON timeline (action_id, revision, type, subject);
CREATE UNIQUE INDEX outbox_once ON outbox (action_id, revision, kind, event);
CREATE INDEX outbox_by_account ON outbox (account_id, id);
CREATE INDEX outbox_active ON outbox (kind, lease_until) WHERE status = 'active';
CREATE INDEX outbox_mailed_to ON outbox (host, sent_at) WHERE kind = 'mail' AND sent_at IS NOT NULL;
CREATE INDEX outbox_mailed_by ON outbox (account_id, sent_at) WHERE kind = 'mail' AND sent_at IS NOT NULL;
CREATE INDEX actions_pending ON actions (account_id, host, key_id, due_at) WHERE status = 'pending';
CREATE INDEX outbox_pending ON outbox (kind, account_id, host, key_id, due_at) WHERE status = 'pending';
CREATE INDEX actions_held_by_key ON actions (account_id, key_id, id) WHERE status = 'awaiting_approval';
CREATE INDEX actions_broken ON actions (id) WHERE status <> 'completed' AND status <> 'failed' AND status <> 'cancelled' AND NOT (
  typeof(id) = 'text' AND typeof(account_id) = 'text' AND typeof(host) = 'text' AND typeof(key_id) = 'text' AND typeof(revision) = 'integer'
  AND revision < 9007199254740991 AND typeof(ifnull(due_at, 0)) = 'integer'
  AND ifnull(due_at, 0) < 8640000000000001 AND ifnull(due_at, 0) > -8640000000000001
  AND typeof(ifnull(lease_until, 0)) = 'integer' AND ifnull(lease_until, 0) < 8640000000000001
  AND ifnull(lease_until, 0) > -8640000000000001
  AND (status <> 'awaiting_approval' OR (
    typeof(url) = 'text' AND typeof(hostname) = 'text' AND typeof(created_by) = 'text'
    AND (method = 'GET' OR method = 'POST' OR method = 'PUT' OR method = 'PATCH' OR method = 'DELETE')
    AND (on_unknown = 'retry' OR on_unknown = 'stop') AND (approve = 0 OR approve = 1)
    AND typeof(ifnull(dedupe, '')) = 'text' AND typeof(ifnull(idempotency_key, '')) = 'text'
    AND typeof(ifnull(callback, '')) = 'text' AND typeof(ifnull(notify_email, '')) = 'text'
    AND typeof(ifnull(approved_by, '')) = 'text' AND typeof(ifnull(approved_digest, '')) = 'text'
    AND typeof(ifnull(sealed_headers, '')) = 'text' AND typeof(ifnull(body, '')) = 'text'
    AND typeof(run) = 'integer' AND run > 0 AND run < 9007199254740991 AND typeof(attempts) = 'integer'
    AND attempts > -1 AND attempts < 9007199254740991 AND typeof(retries) = 'integer' AND retries > 0
    AND retries < 9007199254740991 AND typeof(created_at) = 'integer' AND created_at < 8640000000000001
    AND created_at > -8640000000000001 AND typeof(ifnull(started_at, 0)) = 'integer'
    AND ifnull(started_at, 0) < 8640000000000001 AND ifnull(started_at, 0) > -8640000000000001
    AND typeof(ifnull(finished_at, 0)) = 'integer' AND ifnull(finished_at, 0) < 8640000000000001
    AND ifnull(finished_at, 0) > -8640000000000001 AND typeof(ifnull(approved_at, 0)) = 'integer'
    AND ifnull(approved_at, 0) < 8640000000000001 AND ifnull(approved_at, 0) > -8640000000000001)));
CREATE INDEX outbox_broken ON outbox (id) WHERE status <> 'delivered' AND status <> 'given_up' AND status <> 'dropped' AND NOT (
  typeof(id) = 'text' AND typeof(account_id) = 'text' AND typeof(host) = 'text' AND typeof(key_id) = 'text'
  AND (kind = 'callback' OR kind = 'mail') AND typeof(attempts) = 'integer' AND attempts < 9007199254740991
  AND typeof(ifnull(due_at, 0)) = 'integer' AND ifnull(due_at, 0) < 8640000000000001
  AND ifnull(due_at, 0) > -8640000000000001 AND typeof(ifnull(lease_until, 0)) = 'integer'
  AND ifnull(lease_until, 0) < 8640000000000001 AND ifnull(lease_until, 0) > -8640000000000001);
CREATE UNIQUE INDEX pauses_in_force ON pauses (account_id, kind, subject) WHERE ended_at IS NULL;
CREATE INDEX pauses_by_subject ON pauses (account_id, kind, subject, created_at);
CREATE INDEX pauses_by_end ON pauses (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX audit_by_account ON audit (account_id, seq);
CREATE INDEX actions_by_key ON actions (account_id, key_id, id) WHERE key_id <> '';
CREATE INDEX rejections_by_request ON rejections (account_id, key_id, digest, at);
CREATE INDEX rejections_by_key ON rejections (account_id, key_id, at);
CREATE INDEX rejections_by_age ON rejections (at);
COMMIT;

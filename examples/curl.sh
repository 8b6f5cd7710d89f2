#!/bin/sh
# The first five minutes with curl: send a call, wait for its end, see what happened.
#
# With an agent key in OUTGATE_API_KEY:
#   sh examples/curl.sh http://127.0.0.1:4000/hello
set -eu
url=${OUTGATE_URL:-http://127.0.0.1:3000}
target=${1:-http://127.0.0.1:4000/hello}
# By standard input: on its command line everybody on the machine could read the key.
outgate() { echo "Authorization: Bearer $OUTGATE_API_KEY" | curl -sS --fail-with-body -H @- "$@"; }

# The same Idempotency-Key within 24 hours is the same action: this can be repeated until an answer comes.
action=$(outgate "$url/v1/actions" -H 'Content-Type: application/json' -H "Idempotency-Key: curl-$$" \
  -d "{\"url\": \"$target\", \"body\": {\"hello\": \"world\"}, \"retries\": 5}")
id=$(printf %s "$action" | sed 's/^{"id":"\([^"]*\)".*/\1/')
echo "Stored as $id: it survives a crash from here on."

# Answers as soon as the action has ended, after 60 seconds in any case.
outgate "$url/v1/actions/$id?wait=60"
echo

# Every change and every attempt, oldest first.
outgate "$url/v1/actions/$id/timeline"
echo

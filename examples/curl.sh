#!/bin/sh
# First steps with curl: send a call, wait for its end, read its timeline.
#
# With an agent key in OUTGATE_API_KEY:
#   sh examples/curl.sh http://127.0.0.1:4000/hello
set -eu
url=${OUTGATE_URL:-http://127.0.0.1:3000}
target=${1:-http://127.0.0.1:4000/hello}
# The key goes through standard input: other users of the machine can read command lines.
outgate() { echo "Authorization: Bearer $OUTGATE_API_KEY" | curl -sS --fail-with-body -H @- "$@"; }

# The same Idempotency-Key within 24 hours returns the same action, so this request is safe to repeat. The time, because
# numbers of processes come again.
action=$(outgate "$url/v1/actions" -H 'Content-Type: application/json' -H "Idempotency-Key: curl-$(date +%s)-$$" \
  -d "{\"url\": \"$target\", \"body\": {\"hello\": \"world\"}, \"retries\": 5}")
id=$(printf %s "$action" | sed 's/^{"id":"\([^"]*\)".*/\1/')
echo "Stored as $id: it survives a crash from now on."

# Returns as soon as the action has ended, or after 60 seconds.
outgate "$url/v1/actions/$id?wait=60"
echo

# Every change and every attempt, oldest first.
outgate "$url/v1/actions/$id/timeline"
echo

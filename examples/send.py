"""Has something done once, and waits for the end. Needs httpx (pip install httpx) and an agent key in OUTGATE_API_KEY:

    python3 examples/send.py http://127.0.0.1:4000/orders order-4711
"""

import os
import sys
import httpx

outgate = httpx.Client(
    base_url=os.environ.get("OUTGATE_URL", "http://127.0.0.1:3000"),
    headers={"Authorization": f"Bearer {os.environ['OUTGATE_API_KEY']}"},
    transport=httpx.HTTPTransport(retries=3),
    timeout=90,
)


def send_once(url: str, body: dict, key: str) -> dict:
    """Creates the action and waits for its end. A second call with the same key sends nothing again."""
    created = outgate.post("/v1/actions", json={"url": url, "body": body}, headers={"Idempotency-Key": key})
    if created.is_error:
        error = created.json()["error"]
        raise SystemExit(f"{error['code']}: {error['message']} {error.get('details', '')}")
    action = created.json()
    while action["status"] not in ("completed", "failed", "cancelled"):
        action = outgate.get(f"/v1/actions/{action['id']}", params={"wait": 60}).raise_for_status().json()
    return action


if __name__ == "__main__":
    done = send_once(sys.argv[1], {"order": sys.argv[2]}, sys.argv[2])
    print(done["status"], done["response_code"], done["last_error"])

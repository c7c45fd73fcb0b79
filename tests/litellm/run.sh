#!/usr/bin/env bash
# Both agents through a LiteLLM proxy that answers from another wire format (docs/litellm.md).
#
# Not part of `make test`: it installs LiteLLM, some 750 MB on disk. LITELLM=/path/to/litellm uses one that is there.
set -euo pipefail
cd "$(dirname "$0")/../.."

version=1.108.7
folder=$(mktemp -d)
started=()
clean_up() {
    for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
    rm -rf "$folder"
}
trap clean_up EXIT

# Waits until the command succeeds.
await() {
    for _ in $(seq 240); do
        if "$@" >/dev/null 2>&1; then return; fi
        sleep 0.5
    done
    echo "waited too long for: $*" >&2
    tail -n 20 "$folder"/*.log >&2
    exit 1
}

if [[ -z ${LITELLM:-} ]]; then
    python3 -m venv "$folder/venv"
    "$folder/venv/bin/pip" install --quiet "litellm[proxy]==$version"
    LITELLM=$folder/venv/bin/litellm
fi
cargo build --quiet --locked --package proctor
cargo build --quiet --locked --package proctor-gateway --example play_script
built=${CARGO_TARGET_DIR:-target}/debug

export NO_PROXY=127.0.0.1 no_proxy=127.0.0.1
"$built/examples/play_script" runner/cli/preflight/four-proofs/script.toml 0 /work >"$folder/script.log" &
started+=($!)
await grep --quiet 'listening on' "$folder/script.log"
SCRIPT_URL=$(sed -n 's/^listening on //p' "$folder/script.log")/v1

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
SELF_URL=http://127.0.0.1:$port/v1
LITELLM_API_KEY=sk-$RANDOM$RANDOM$RANDOM
export SCRIPT_URL SELF_URL LITELLM_API_KEY
"$LITELLM" --config tests/litellm/config.yaml --host 127.0.0.1 --port "$port" >"$folder/litellm.log" 2>&1 &
started+=($!)
await python3 -c "import urllib.request; urllib.request.urlopen('http://127.0.0.1:$port/health/liveliness')"

cat >"$folder/providers.toml" <<END
[litellm]
base_url = "$SELF_URL"
wire = ["openai_responses", "anthropic_messages"]
key_env = "LITELLM_API_KEY"
END

failed=0
for harness in codex claude-code; do
    echo "== $harness, translated, with tools and a picture"
    "$built/proctor" preflight --harness "$harness" --model litellm/translated-script \
        --providers "$folder/providers.toml" || failed=1

    # The mock knows one sentence and no tools; the sentence must arrive as the agent's text.
    echo "== $harness, translated, one plain text turn"
    out=$folder/$harness
    "$built/proctor" run --tasks tasks/samples --task arch-replicas --harness "$harness" --budget 60s \
        --model litellm/translated-mock --providers "$folder/providers.toml" --no-render --out "$out" >/dev/null
    if grep --quiet '"kind":"agent_text","text":"The proxy answered."' "$out"/trials/vao/*/*/1/trace.jsonl; then
        echo "good: the text arrived"
    else
        echo "BAD: the text did not arrive"
        failed=1
    fi
    if grep --recursive --quiet "$LITELLM_API_KEY" "$out"; then
        echo "BAD: the key is in the results"
        failed=1
    fi
done
exit "$failed"
